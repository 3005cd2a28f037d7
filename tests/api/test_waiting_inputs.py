"""Who said what waits, where it stands, and what a wake that waits tells of: in events, the inbox and the view."""

from pydantic_ai import Tool

from outlast import hints
from outlast.client.session import Session
from outlast.testing import call, gate, text
from outlast.wire.view import MessageBlock
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import client_of, serving
from tests.support.turns.background import BUDGET
from tests.support.turns.runtime import Runtime, scripted


async def test_a_message_tells_who_said_it_and_where_it_waits(runtime: Runtime) -> None:
    """D2, D3, K6: by the key's owner or the name that is given; places move up when one is taken back."""
    here = Checkpoint()
    async with (
        serving(runtime(scripted([text("One"), gate(here)], "Two.", "Three.", "Four."))) as server,
        client_of(server) as client,
    ):
        session = await client.sessions.create()
        await session.send("first")
        await here.reached()
        sent = [await session.send(f"message {number}", when_busy="queue", by="Ada") for number in range(3)]
        assert [each.place for each in sent] == [1, 2, 3]
        assert await _told(session) == [(None, "test"), *[(place, "Ada (key test)") for place in (1, 2, 3)]]
        await session.remove_input(sent[0].input_id)
        inbox = await session.inbox()
        assert [(each.id, each.by, each.place) for each in inbox] == [
            (each.input_id, "Ada (key test)", place) for place, each in enumerate(sent[1:], 1)
        ]
        assert [await session.input(each.input_id) for each in sent[1:]] == inbox
        assert (await session.edit_input(sent[2].input_id, "better")).place == 2
        waiting = (await session.view()).inbox
        assert [(each.input_id, each.by, each.place) for each in waiting] == [
            (each.id, each.by, each.place) for each in inbox
        ]
        here.open()
        await session.settled(wait=20)
        assert (await session.input(sent[1].input_id)).place is None
        blocks = [block for turn in (await session.view()).turns for block in turn.blocks]
        assert [each.by for each in blocks if isinstance(each, MessageBlock)] == ["test", *["Ada (key test)"] * 2]


async def test_a_program_says_who_said_a_message(runtime: Runtime) -> None:
    """D2, E5: the owner, unless it names somebody; a registered value in the name is masked."""
    async with runtime(scripted("One.", "Two.", "Three.")) as here:
        here.secrets.add("grape-soda-77")
        session = await here.sessions.create()
        for by in (None, "Ben", "grape-soda-77"):
            await session.ask("hi", by=by)
        async with session.events(follow=False, types=["input.accepted", "input.delivered"]) as stream:
            told = [(event.type, event.data["by"]) async for event in stream]
        names = [name for _, name in told]
        assert names == ["local", "local", "Ben", "Ben", names[-1], names[-1]]
        assert "grape" not in names[-1]


async def test_the_whole_inbox_has_wakes_with_their_tasks(runtime: Runtime) -> None:
    """B4, K6: what waits of a held session: messages alone, or all of it; of a wake its task, which the view has."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "three metres"

    tool = Tool(survey, metadata=hints(budget=BUDGET))
    steps = scripted(call("survey"), "Running.", "Done.", "Done.")
    async with serving(runtime(steps, tools=[tool])) as server, client_of(server) as client:
        ada = await server.client()
        session = await client.sessions.create()
        await (await session.send("go")).outcome(wait=20)
        await session.stop()
        here.open()
        [task] = await session.tasks()
        await client.tasks.wait(task.id, seconds=20)
        assert await session.inbox() == []
        [wake] = await session.inbox(is_whole=True)
        assert (wake.kind, wake.state, wake.task_ids, wake.by, wake.place) == ("wake", "waiting", [task.id], None, None)
        over_http = (await ada.get(f"/v1/sessions/{session.id}/inbox", params={"whole": "true"})).json()["items"]
        assert [(each["id"], each["task_ids"]) for each in over_http] == [(wake.id, [task.id])]
        view = await session.view()
        [waiting], [ended] = view.inbox, view.tasks
        assert (waiting.task_ids, ended["id"]) == ([task.id], task.id)
        assert (ended["state"], ended.get("title"), ended.get("result_preview")) == (
            "succeeded",
            "survey",
            "three metres",
        )
        assert {"started_at", "ended_at"} <= ended.keys()


async def _told(session: Session) -> list[tuple[int | None, str | None]]:
    async with session.events(follow=False, types=["input.accepted"]) as stream:
        return [(each.data.get("place"), each.data.get("by")) async for each in stream]
