"""What owners use, and the daily stop (H1, H2, H3)."""

from pydantic_ai.usage import RequestUsage

from outlast.testing import reply
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted


async def test_an_owner_sees_tokens_and_an_admin_sees_money(runtime: Runtime) -> None:
    """H3: with tenants, owners see percent and reset time only; unknown cost is never shown as zero."""
    answer = reply("Hello.", usage=RequestUsage(input_tokens=100, output_tokens=7))
    async with serving(runtime(scripted(answer))) as server:
        ada, root = await server.client(), await server.client("root", role="admin")
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        await ada.post(f"{session}/messages", json={"text": "hi"})
        await ada.get(f"{session}/result", params={"wait": 10})
        own = (await ada.get("/v1/usage")).json()
        assert (own["today"]["input_tokens"], own["today"]["output_tokens"]) == (100, 7)
        assert (own["is_money_shown"], own["today"]["cost_microdollars"]) == (False, None)
        seen = (await root.get("/v1/usage", params={"owner_id": "ada"})).json()
        assert seen["is_money_shown"]
        assert (seen["today"]["unpriced_requests"], seen["today"]["cost_microdollars"]) == (1, None)
        assert (await ada.get("/v1/usage", params={"owner_id": "root"})).status_code == 403


async def test_at_the_limit_a_message_is_refused_with_the_time_it_ends(runtime: Runtime) -> None:
    """H2: 429 with Retry-After and the reset time; nothing is stored."""
    async with serving(runtime(["Hello."], daily_cost_limit=0)) as server:
        ada = await server.client()
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        refused = await ada.post(f"{session}/messages", json={"text": "hi"})
        assert (refused.status_code, refused.json()["code"]) == (429, "limit_reached")
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["reset_at"]
        assert (await ada.get(f"{session}/inbox")).json()["items"] == []
