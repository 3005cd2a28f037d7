"""Connections over HTTP, by the client and the command: an owner's own, and never a value (A17)."""

import asyncio
from typing import Any

import pytest
from cryptography.fernet import Fernet
from typer.testing import CliRunner

from outlast import Client
from outlast.cli.main import app
from outlast.errors import Forbidden, InvalidInput, NoEncryptionKey, NotFound
from outlast.store.repositories import connections as rows
from outlast.values.sealing import Sealing
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

VALUE = "ghp_4711-wörd"
KEYS = (Fernet.generate_key().decode(),)


async def test_an_owner_sets_lists_and_removes_its_own(runtime: Runtime) -> None:
    """A17, P7: answers name it and never show its value; another owner's same provider is another one."""
    async with serving(runtime(encryption_keys=KEYS)) as server:
        ada, ben = await server.client("ada"), await server.client("ben")
        made = await ada.put("/v1/connections/github", json={"value": VALUE})
        assert made.status_code == 200
        assert {name: made.json()[name] for name in ("provider", "state", "used_at")} == {
            "provider": "github",
            "state": "ready",
            "used_at": None,
        }
        answers = [made, await ada.get("/v1/connections"), await ada.get("/v1/connections/github")]
        assert all("4711" not in each.text for each in answers)
        assert (await ben.get("/v1/connections")).json()["items"] == []
        await ben.put("/v1/connections/github", json={"value": "that of Ben"})
        assert (await ben.delete("/v1/connections/github")).status_code == 204
        assert [each["provider"] for each in (await ada.get("/v1/connections")).json()["items"]] == ["github"]
        assert (await ada.delete("/v1/connections/github")).status_code == 204
        assert (await ada.delete("/v1/connections/github")).status_code == 404


async def test_an_admin_moves_all_to_a_new_key_and_sees_none(runtime: Runtime) -> None:
    """A17: with tenants an admin cannot read or use those of another."""
    new = Fernet.generate_key().decode()
    async with serving(runtime(encryption_keys=KEYS)) as server:
        await (await server.client("ada")).put("/v1/connections/github", json={"value": VALUE})
    async with serving(runtime(encryption_keys=(new, *KEYS))) as server:
        ada, root = await server.client("ada"), await server.client("root", role="admin")
        assert (await root.get("/v1/connections")).json()["items"] == []
        assert (await root.get("/v1/connections/github")).status_code == 404
        assert (await ada.post("/v1/connections/rekey")).status_code == 403
        assert (await root.post("/v1/connections/rekey")).json() == {"moved": 1, "unreadable": 0}
    async with serving(runtime(encryption_keys=(new,))) as server:
        ada = await server.client("ada")
        assert (await ada.get("/v1/connections/github")).json()["state"] == "ready"
    async with serving(runtime(encryption_keys=KEYS)) as server:
        ada = await server.client("ada")
        assert (await ada.get("/v1/connections/github")).json()["state"] == "unreadable"


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("Git", {"value": VALUE}),
        ("a%2Fb", {"value": VALUE}),
        ("a" * 65, {"value": VALUE}),
        ("github", {"value": "short"}),
        ("github", {"value": VALUE * 10_000}),
        ("github", {"value": 4711_4711}),
        ("github", {"value": [VALUE]}),
        ("github", {"valu": VALUE}),
        ("github", {}),
    ],
)
async def test_what_cannot_be_kept_is_refused_without_being_shown(runtime: Runtime, provider: str, body: Any) -> None:
    async with serving(runtime(encryption_keys=KEYS)) as server:
        refused = await (await server.client("ada")).put(f"/v1/connections/{provider}", json=body)
        assert refused.status_code in (404, 422)
        assert "4711" not in refused.text


async def test_without_a_key_it_says_how_to_make_one(runtime: Runtime) -> None:
    """A17: a code of its own, and the same error for a client."""
    async with serving(runtime()) as server:
        ada = await server.client("ada")
        refused = await ada.put("/v1/connections/github", json={"value": VALUE})
        assert (refused.status_code, refused.json()["code"]) == (409, "no_encryption_key")
        assert "outlast keys generate-encryption" in refused.json()["detail"]
        assert (await ada.get("/v1/connections")).json()["items"] == []


async def test_a_client_does_the_same(runtime: Runtime) -> None:
    async with serving(runtime(encryption_keys=KEYS)) as server:
        _, token = await server.outlast.keys.make("ada", "test")
        async with Client(server.url, token) as client:
            assert (await client.connections.set("github", VALUE)).state == "ready"
            assert [each.provider for each in await client.connections.list()] == ["github"]
            assert (await client.connections.get("github")).provider == "github"
            with pytest.raises(InvalidInput):
                await client.connections.set("Git", VALUE)
            with pytest.raises(Forbidden):
                await client.rekey_connections()
            await client.connections.remove("github")
            with pytest.raises(NotFound):
                await client.connections.get("github")
    async with serving(runtime()) as server:
        _, token = await server.outlast.keys.make("ada", "test")
        async with Client(server.url, token) as client:
            with pytest.raises(NoEncryptionKey):
                await client.connections.set("github", VALUE)


async def test_the_command_sets_what_it_reads_and_shows_none(runtime: Runtime) -> None:
    """A17: from a pipe, without the newline at its end; a value among the arguments is refused."""
    async with serving(runtime(encryption_keys=KEYS)) as server:
        _, token = await server.outlast.keys.make("ada", "test", role="admin")

        async def outlast(*words: str, typed: str | None = None) -> tuple[int, str]:
            given = ["connections", *words, "--url", server.url, "--token", token]
            done = await asyncio.to_thread(CliRunner().invoke, app, given, input=typed)
            return done.exit_code, done.output

        assert await outlast("set", "github", "-", typed=f"{VALUE}\n") == (0, "Kept, for github.\n")
        row = await server.outlast.database.read(lambda connection: rows.find(connection, "ada", "github"))
        assert row is not None
        assert Sealing(KEYS).open(row.sealed, "ada", "github") == VALUE
        listed = await outlast("list")
        assert "github" in listed[1]
        assert "4711" not in listed[1]
        code, said = await outlast("set", "github", VALUE)
        assert (code, "history" in said, "4711" in said) == (2, True, False)
        assert (await outlast("set", "github", typed=""))[0] == 2
        assert await outlast("rekey") == (0, "Moved to the first key: 0.\n")
        assert await outlast("remove", "github") == (0, "Removed.\n")
        assert (await outlast("remove", "github"))[0] == 3


def test_the_command_makes_a_key_that_seals() -> None:
    made = CliRunner().invoke(app, ["keys", "generate-encryption"])
    sealing = Sealing([made.output.strip()])
    assert sealing.open(sealing.seal(VALUE), *()) == VALUE
