"""After a crash: finished work is not redone, work in flight is told truthfully, nothing is lost or doubled.

The crashes are real: a child process is killed with SIGKILL at an exact place, then this process goes on.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from pydantic_ai import Agent, FunctionToolset, Tool
from pydantic_ai.messages import BinaryContent, UserPromptPart

import outlast as public
from outlast import Outcome, Session, Verdict
from outlast.engines import sweep
from outlast.errors import Conflict, NotFound
from outlast.testing import ScriptedModel, call, gate, text, texts_seen
from tests.support.crashes.crash import MESSAGE, World, crash, session_of
from tests.support.logs.histories import check_history, outline, return_of, stands_once
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, event_types, events_of

UNCERTAIN = "may or may not have taken effect"

# Starting processes takes its time on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """On PostgreSQL, this process takes over from a worker that is dead; it does not wait to see whether it is."""
    found = World(tmp_path)
    if request.param == "postgresql":
        found.live_on(request.getfixturevalue("ready_postgres_url"))
        monkeypatch.setattr(sweep, "LOOK_SECONDS", 0.02)
        monkeypatch.setattr(sweep, "GRACE_SECONDS", 0.0)
    return found


async def ended(session: Session) -> Outcome:
    """The end of the session's turn, with what holds after every restart."""
    outcome = await session.settled()
    assert outcome is not None
    history = await session.history()
    check_history(history)
    assert stands_once(MESSAGE, history)
    types = await event_types(session)
    assert sum(each in ("turn.completed", "turn.failed", "turn.stopped") for each in types) == 1
    numbers = [event.number for event in await events_of(session)]
    assert numbers == sorted(set(map(int, filter(None, numbers))))
    return outcome


async def test_a_finished_call_is_not_run_again(world: World) -> None:
    """P2: its end was committed; the new process goes on with the result."""
    crash(world.folder, "one charge", "commit request before 1")
    ran = list(world.effects)
    async with world.open("one charge") as outlast:
        session = await session_of(outlast)
        outcome = await ended(session)
        assert (outcome.state, outcome.text, outcome.attempt) == ("completed", "Done.", 2)
        assert world.effects == ran
        assert len(ran) == 1


async def test_a_call_in_flight_is_not_run_again_but_told(world: World) -> None:
    """P2: exactly once, in these words, to the model and in the outcome."""
    crash(world.folder, "one charge", "tool charge")
    async with world.open("one charge") as outlast:
        session = await session_of(outlast)
        outcome = await ended(session)
        part = return_of("c1", await session.history())
        assert part.outcome == "interrupted"
        assert UNCERTAIN in str(part.content)
        assert [each.outcome for each in outcome.calls] == ["interrupted"]
        assert len(await events_of(session, "call.ended")) == 1
        assert len(world.effects) == 1
        await check_providers(await session.history())


async def test_an_idempotent_call_in_flight_is_run_again_with_the_same_key(world: World) -> None:
    """P2, A1: the service behind it can tell that it is the same call."""
    crash(world.folder, "one upsert", "tool upsert")
    async with world.open("one upsert") as outlast:
        session = await session_of(outlast)
        assert (await ended(session)).text == "Done."
        first, second = world.effects
        assert first == second
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("success", "row 7 is there")


async def test_parallel_calls_are_each_decided_by_themselves(world: World) -> None:
    """P2: one had ended (with a picture beside its value), one may run again or had ended, one is uncertain."""
    crash(world.folder, "three calls", "tool wait_then_charge")
    before = list(world.effects)
    async with world.open("three calls") as outlast:
        session = await session_of(outlast)
        assert (await ended(session)).text == "Done."
        history = await session.history()
        assert [return_of(each, history).outcome for each in ("c1", "c2", "c3")] == [
            "success",
            "interrupted",
            "success",
        ]
        assert world.effects.count("charge 7") == before.count("charge 7") == 1
        assert world.effects.count("weigh") == 1
        pictures = [
            item
            for message in history
            for part in message.parts
            if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
            for item in part.content
        ]
        assert [item.data for item in pictures if isinstance(item, BinaryContent)] == [b"\x89PNG"]
        await check_providers(history)


async def test_half_an_answer_is_dropped_and_said_so(world: World) -> None:
    """P4, E2: `turn.resumed` names what readers discard; replays leave it out; the model is asked again."""
    crash(world.folder, "two steps", "model 2")
    async with world.open("two steps") as outlast:
        session = await session_of(outlast)
        outcome = await ended(session)
        assert outcome.text == "Half an answer."
        (resumed,) = await events_of(session, "turn.resumed")
        assert resumed.data["dropped"]
        deltas = [event.data for event in await events_of(session, "part.delta")]
        assert "".join(each["text"] for each in deltas if not each["part"].startswith("1.1")) == "Half an answer."
        assert world.effects == ["look door"]


async def test_a_final_answer_is_not_asked_for_again(world: World) -> None:
    """P2: the response was committed, the turn's end was not; only the end is made."""
    crash(world.folder, "slow check", "validator")
    async with world.open("slow check") as outlast:
        session = await session_of(outlast)
        outcome = await ended(session)
        assert outcome.text == outcome.output == "Final."
        assert outcome.usage.requests == 1
        assert outline(await session.history()) == [f"user: {MESSAGE}", "text: Final."]


@pytest.mark.parametrize(
    "place",
    [
        "commit accept before 1",
        "commit accept after 1",
        "commit deliver before 1",
        "commit deliver after 1",
        "commit journal before 1",
        "commit journal after 1",
        "commit request before 1",
        "commit request after 1",
        "commit turn.end before 1",
        "commit turn.end after 1",
    ],
)
async def test_a_kill_around_any_commit_loses_and_doubles_nothing(world: World, place: str) -> None:
    """P1, P2, P3: what was committed is kept, what was not never was."""
    crash(world.folder, "one charge", place)
    async with world.open("one charge") as outlast:
        session = await session_of(outlast)
        if place == "commit accept before 1":
            assert await session.inbox() == []
            await session.send(MESSAGE)
        outcome = await ended(session)
        assert (outcome.state, outcome.text) == ("completed", "Done.")
        assert len(world.effects) <= 1


async def test_a_turn_that_kills_its_process_three_times_is_not_tried_again(world: World) -> None:
    """P4: it fails as `crash_loop`, with its calls decided, and can be retried by a person."""
    for _ in range(3):
        crash(world.folder, "one upsert", "tool upsert")
    async with world.open("one upsert") as outlast:
        session = await session_of(outlast)
        outcome = await ended(session)
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "crash_loop")
        assert len(world.effects) == 3
        assert return_of("c1", await session.history()).outcome == "interrupted"
        assert (await (await session.retry()).outcome()).text == "Done."


@pytest.mark.parametrize(("deploy", "words"), [("without charge", "Gone."), ("another charge", "Changed.")])
async def test_a_call_in_flight_whose_tool_is_no_longer_the_same(world: World, deploy: str, words: str) -> None:
    """P2: whether it was removed or takes other arguments now, the call is told as uncertain, not as a mistake."""
    crash(world.folder, "one charge", "tool charge")
    async with world.open(deploy) as outlast:
        session = await session_of(outlast)
        assert (await ended(session)).text == words
        part = return_of("c1", await session.history())
        assert part.outcome == "interrupted"
        assert UNCERTAIN in str(part.content)
        assert len(world.effects) == 1


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (Verdict.WORKED, "it took effect"),
        (Verdict.FAILED, "it did not take effect"),
        (Verdict.TRY_AGAIN, "it should be tried again"),
    ],
)
async def test_a_person_settles_an_uncertain_call(world: World, verdict: Verdict, says: str) -> None:
    """A2: once; the model is told who said so; a turn starts with it."""
    crash(world.folder, "one charge", "tool charge")
    model = ScriptedModel(lambda _: "Good to know.")
    async with world.open("one charge") as outlast:
        await ended(await session_of(outlast))
    runtime = Runtime(world.database, files=world.files)
    async with runtime(model) as outlast:
        session = await session_of(outlast)
        await session.settle_call("c1", verdict, by="Ada", note="I looked at the bank.")
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "Good to know."
        last = texts_seen(await session.history())[-1]
        assert last.startswith("<runtime_notice>")
        assert "Ada says of the call c1 (charge)" in last
        assert says in last
        assert "I looked at the bank." in last
        with pytest.raises(Conflict, match="already settled"):
            await session.settle_call("c1", verdict, by="Bob")
        with pytest.raises(NotFound):
            await session.settle_call("c9", verdict, by="Bob")


async def test_a_call_that_ended_has_nothing_to_settle(runtime: Runtime) -> None:
    """A2: what is known is not decided by a vote."""

    def work() -> str:
        return "worked"

    async with runtime([call("work", call_id="c1"), "Done."], tools=[work]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Work.")
        with pytest.raises(Conflict):
            await session.settle_call("c1", Verdict.FAILED, by="Ada")


async def test_a_clean_shutdown_hands_over_at_a_boundary(runtime: Runtime) -> None:
    """DESIGN part 8: the running tool finishes, its result is kept, the next start goes on behind it."""
    here, runs = Checkpoint(), list[str]()

    async def work() -> str:
        runs.append("work")
        await here()
        return "worked"

    model = ScriptedModel([call("work", call_id="c1"), "Done."], by="history")
    async with runtime(model, tools=[work], drain=timedelta(seconds=30)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Work.")
        await here.reached()
        asyncio.get_running_loop().call_soon(here.open)
    async with runtime(model, tools=[work]) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.settled()
        assert outcome is not None
        assert (outcome.state, outcome.text, outcome.attempt) == ("completed", "Done.", 2)
        assert runs == ["work"]
        assert len(model.requests) == 2
        check_history(await session.history())


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_a_call_that_does_not_end_before_shutdown(runtime: Runtime, is_idempotent: bool) -> None:
    """P2: cancelled at the end of the drain; run again by the next process if it may be, else told."""
    here, runs = Checkpoint(), list[str]()

    async def work() -> str:
        runs.append("work")
        await here()
        return "worked"

    async def serve(model: ScriptedModel) -> Outcome | None:
        agent = Agent(model, name="agent")
        agent.tool_plain(metadata=public.hints(idempotent=is_idempotent))(work)
        async with runtime(agent=agent) as outlast:
            found = await outlast.sessions.list()
            if found:
                return await found[0].settled()
            session = await outlast.sessions.create()
            await session.send("Work.")
            await here.reached()
            return None

    model = ScriptedModel([call("work", call_id="c1"), "Done."], by="history")
    await serve(model)
    here.open()
    outcome = await serve(model)
    assert outcome is not None
    assert (outcome.state, outcome.text) == ("completed", "Done.")
    assert [each.outcome for each in outcome.calls] == ["success" if is_idempotent else "interrupted"]
    assert len(runs) == (2 if is_idempotent else 1)


async def test_a_task_that_cannot_begin_again_is_told_as_failed(runtime: Runtime) -> None:
    """P4: the next process has the agent, but its toolset does not open; nobody waits for ever."""
    here = Checkpoint()

    class Broken(FunctionToolset[Any]):
        async def __aenter__(self) -> Self:
            raise ConnectionError("no such server")

    async def work() -> str:
        await here()
        return "worked"

    tool = Tool(work, metadata=public.hints(budget=0.01, idempotent=True))
    first = ScriptedModel([call("work", call_id="c1"), "It goes on."])
    async with runtime(agent=Agent(first, name="agent", tools=[tool])) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Work.")).outcome()
        (task,) = await outlast.tasks.list()
    second = Agent(ScriptedModel(["Never."]), name="agent", tools=[tool], toolsets=[Broken()])
    async with runtime(agent=second) as outlast:
        ended = await outlast.tasks.wait(task.id, seconds=30)
        assert (ended.state, ended.attempt, (ended.error or {}).get("kind")) == ("failed", 2, "internal_error")


async def test_shutdown_in_the_middle_of_an_answer_asks_again(runtime: Runtime) -> None:
    """P4: half an answer is dropped; the model is asked again; the message stands once."""
    here = Checkpoint()
    first = ScriptedModel([[text("Half an"), gate(here), text("never")]])
    async with runtime(first) as outlast:
        session = await outlast.sessions.create()
        await session.send("Hi")
        await here.reached()
    async with runtime(ScriptedModel(["Whole."])) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "Whole."
        assert outline(await session.history()) == ["user: Hi", "text: Whole."]
        assert "Half an" not in repr(await events_of(session))


async def test_an_interrupt_between_two_attempts_stops_the_turn(runtime: Runtime) -> None:
    """D1: a turn that waits to be taken over is interrupted like one that runs."""
    here = Checkpoint()
    async with runtime(ScriptedModel([[text("Half"), gate(here)]]), max_turns_per_worker=1) as outlast:
        session = await outlast.sessions.create()
        await session.send("Hi")
        await here.reached()
    busy = Checkpoint()
    models = ScriptedModel([[gate(busy), text("A.")], "B.", "C."])
    async with runtime(models, max_turns_per_worker=1) as outlast:
        session = await outlast.sessions.get(session.id)
        await busy.reached()
        sent = await session.send("Rather this.", when_busy="interrupt")
        assert (await sent.outcome()).text == "B."
        assert texts_seen(await session.history()) == ["Hi", "Rather this."]
