"""Turns in a list, and pages of a log: backwards, of one turn, of one task."""

from outlast.errors import InvalidInput
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, scripted


async def test_turns_are_listed_and_the_log_is_read_backwards(runtime: Runtime) -> None:
    """K1, K2: the same in the library and the client; pages meet without a gap."""
    async with serving(runtime(scripted("One.", "Two.", "Three."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        for _ in range(3):
            await (await session.send("Hi")).outcome(wait=20)
        here = await server.outlast.owned_by("ada").get(session.id)
        page = await session.turn_list(limit=2)
        assert [each.state for each in page.items] == ["completed", "completed"]
        first = await session.turn_list(before=page.next, limit=2)
        assert (len(first.items), first.next) == (1, None)
        assert (await here.turn_list(limit=2)).items == page.items
        assert first.items[0].started_at is not None
        every = await session.log()
        assert [each.number for each in every] == [each.number for each in await here.log()]
        last = await session.log(before=every[-1].number, limit=3)
        assert [each.number for each in last] == [each.number for each in every[-4:-1]]
        of_turn = await session.log(turn_id=first.items[0].id)
        assert of_turn
        assert {each.turn_id for each in of_turn} == {first.items[0].id}
        assert await session.log(task_id="tsk_unknown") == []
        named = await session.log(turn_id=first.items[0].id, types=["turn.completed"])
        assert [each.type for each in named] == ["turn.completed"]
        ada = await server.client()
        asked = await ada.get(
            f"/v1/sessions/{session.id}/events", params={"turn": "x"}, headers={"Accept": "text/event-stream"}
        )
        assert asked.json()["code"] == InvalidInput.code
