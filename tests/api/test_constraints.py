"""Permissions, dry run and binding of a session over HTTP and by the client (A7, A8, D11)."""

from typing import Any

from outlast import Binding, Client, Permissions
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime


async def test_what_constrains_a_session_is_set_shown_and_changed(runtime: Runtime) -> None:
    """A7, A8, D11: a resource finds its session; a rule that cannot be read is refused with its fault."""
    invoice = {"kind": "invoice", "id": "4711", "defaults": {"invoice_id": "4711"}, "waives_prerequisites": False}
    async with serving(runtime()) as server:
        ada = await server.client("ada")
        body = {"permissions": {"deny": ["shell"]}, "is_dry_run": True, "binding": invoice}
        made = (await ada.post("/v1/sessions", json=body)).json()
        assert made["permissions"] == {"allow": None, "deny": ["shell"], "always": [], "within": []}
        assert (made["is_dry_run"], made["binding"]) == (True, invoice)
        again = (await ada.post("/v1/sessions", json={"binding": {"kind": "invoice", "id": "4711"}})).json()
        assert again["id"] == made["id"]
        ben = await server.client("ben")
        assert (await ben.post("/v1/sessions", json={"binding": invoice})).json()["id"] != made["id"]
        path = f"/v1/sessions/{made['id']}"
        changed = await ada.patch(path, json={"permissions": {"allow": ["read_*"]}, "is_dry_run": False})
        assert changed.json()["permissions"] == {"allow": ["read_*"], "deny": [], "always": [], "within": []}
        assert changed.json()["is_dry_run"] is False
        bad: list[dict[str, Any]] = [{"deny": ["shell("]}, {"deny": "shell"}, {"denied": []}, {"allow": ["x"] * 201}]
        for wrong in bad:
            refused = await ada.patch(path, json={"permissions": wrong})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        assert "cannot be read" in (await ada.patch(path, json={"permissions": {"deny": ["shell("]}})).json()["detail"]


async def test_a_client_sets_and_sees_them(runtime: Runtime) -> None:
    """A7, A8, D11."""
    invoice = Binding(kind="invoice", id="4711", defaults={"invoice_id": "4711"})
    async with serving(runtime()) as server:
        _, token = await server.outlast.keys.make("ada", "test")
        async with Client(server.url, token) as client:
            first = await client.sessions.create(binding=invoice, permissions=Permissions(deny=["shell"]))
            assert (first.permissions.deny, first.is_dry_run, first.binding) == (["shell"], False, invoice)
            again = await client.sessions.create(binding=Binding(kind="invoice", id="4711"))
            assert (again.id, again.binding) == (first.id, invoice)
            await again.update(permissions=Permissions(deny=["pay(amount>100)"]), is_dry_run=True)
            assert (again.permissions.deny, again.is_dry_run) == (["pay(amount>100)"], True)
            await again.update(permissions=None)
            assert again.permissions.deny == []
