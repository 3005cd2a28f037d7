"""Stop at the worst moment: between two commits of the turn, or right after its claim."""

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext

from outlast import Session
from outlast.runs.turns.attempt import Attempt, Cause
from outlast.store.database import CommitWatcher, Database, Moment
from outlast.store.sqlite import opening
from outlast.testing import ScriptedModel, call, error, gate, reasoning, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.hanging import hanging_deps, wait_only_for_signals
from tests.support.moments.holding import HoldsBack
from tests.support.turns.runtime import Runtime, event_types, events_of, wait_for_event


class HeldCommit:
    """The first commit of a name after `arm` waits just before it until `release`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_armed = False
        self._held = threading.Event()
        self._released = threading.Event()

    def watch(self, name: str, moment: Moment) -> None:
        if self._is_armed and name == self._name and moment == "before":
            self._held.set()
            assert self._released.wait(10)

    def arm(self) -> None:
        self._is_armed = True

    async def held(self) -> None:
        assert await asyncio.to_thread(self._held.wait, 10)

    def release(self) -> None:
        self._is_armed = False
        self._released.set()


class HeldNotice:
    """After `begin`, an attempt that looks whether it must stop waits until `release`."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read = database.glance
        self._place = Checkpoint()
        self._is_holding = False
        self._has_looked = asyncio.Event()
        monkeypatch.setattr(database, "glance", self._look)

    async def _look(self, fn: Any) -> Any:
        current = asyncio.current_task()
        if not self._is_holding or current is None or not current.get_name().startswith("watch "):
            return await self._read(fn)
        await self._place()
        found = await self._read(fn)
        self._has_looked.set()
        return found

    def begin(self) -> None:
        self._is_holding = True

    async def reached(self) -> None:
        await self._place.reached()

    async def release(self) -> None:
        self._place.open()
        await self._has_looked.wait()
        await turns_of_the_loop()


def watch_from_the_start(monkeypatch: pytest.MonkeyPatch, watcher: CommitWatcher) -> None:
    """The next database tells of its commits from the first one on: what it finds is claimed while it is opened."""
    opened = opening.open_sqlite

    async def watched(*args: Any, **options: Any) -> Any:
        database = await opened(*args, **options)
        database.watcher = watcher
        return database

    monkeypatch.setattr(opening, "open_sqlite", watched)


async def turns_of_the_loop() -> None:
    """Let everything run that waits for nothing but its turn."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_call_is_answered_once_when_stop_meets_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2, D5: answers that wait for their commit when the run is cancelled are not given a second time."""
    flush = HeldCommit("flush")
    rivers = {"Elbe": Checkpoint(), "Oder": Checkpoint()}

    async def measure(river: str) -> str:
        await rivers[river]()
        return f"{river}: 2.4 m"

    asked = [call("measure", {"river": river}, call_id=river) for river in rivers]
    async with Runtime(tmp_path / "app.db")([asked, "Done."], tools=[measure]) as outlast:
        notice = HeldNotice(outlast.database, monkeypatch)
        outlast.database.watcher = flush.watch
        session = await outlast.sessions.create()
        await session.send("How high are the rivers?")
        await rivers["Oder"].reached()
        notice.begin()
        stopping = asyncio.create_task(session.stop())
        await notice.reached()
        flush.arm()
        rivers["Elbe"].open()
        await flush.held()
        rivers["Oder"].open()
        await turns_of_the_loop()
        await notice.release()
        flush.release()
        outcome = await stopping
        history = await session.history()

    assert outcome is not None
    assert outcome.state == "stopped"
    parts = [part for message in history if isinstance(message, ModelRequest) for part in message.parts]
    answers = [(part.tool_call_id, part.content) for part in parts if isinstance(part, ToolReturnPart)]
    assert answers == [("Elbe", "Elbe: 2.4 m"), ("Oder", "Oder: 2.4 m")]


async def log_and_history(session: Session) -> tuple[str, str]:
    """The text as readers of the log have it in the end, and as it stands in history."""
    told = [event.data["text"] for event in await events_of(session, "part.delta")]
    parts = [part for message in await session.history() for part in message.parts]
    return "".join(told), "".join(part.content for part in parts if isinstance(part, TextPart))


class Slow(AbstractCapability[Any]):
    """A capability of the agent that takes its time with a response that has arrived."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        await self._checkpoint()
        return response


async def test_log_and_history_agree_when_stop_meets_the_end_of_a_response(tmp_path: Path) -> None:
    """D5: a response that was told to its last word and not stored yet is kept or dropped, the same in both."""
    arrived = Checkpoint()
    agent = Agent(ScriptedModel(["The river is high."]), capabilities=[Slow(arrived)])
    async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await arrived.reached()
        await wait_for_event(session, "part.ended")
        outcome = await session.stop()
        told, stored = await log_and_history(session)

    assert outcome is not None
    assert outcome.state == "stopped"
    assert told == stored == outcome.text


@pytest.mark.parametrize(
    ("held", "kept"), [(PartStartEvent, ""), (PartDeltaEvent, "The river "), (PartEndEvent, "The river is high.")]
)
async def test_log_and_history_agree_when_stop_meets_a_word_on_its_way(
    tmp_path: Path, held: type[AgentStreamEvent], kept: str
) -> None:
    """D5: a word that arrived and that nobody was told is not in history either."""
    arrived = Checkpoint()
    said = [text("The river "), text("is high.")]
    agent = Agent(ScriptedModel([said]), capabilities=[HoldsBack(arrived, held)])
    async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await arrived.reached()
        outcome = await session.stop()
        told, stored = await log_and_history(session)
        types = await event_types(session)

    assert outcome is not None
    assert told == stored == outcome.text == kept
    assert types.count("part.started") == types.count("part.ended")


class HidesThoughts(AbstractCapability[Any]):
    """A capability of the agent that keeps what the model thinks from its readers."""

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterator[AgentStreamEvent]:
        async for event in stream:
            if not (isinstance(event, PartStartEvent | PartDeltaEvent | PartEndEvent) and event.index == 0):
                yield event


async def test_what_an_agent_hides_stays_hidden_when_its_turn_is_stopped(tmp_path: Path) -> None:
    """D5: it stays in history, where the model finds it again, and is told to nobody."""
    here = Checkpoint()
    said = [reasoning("The gauge is broken."), text("The river is high."), gate(here)]
    agent = Agent(ScriptedModel([said]), capabilities=[HidesThoughts()])
    async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await here.reached()
        await session.stop()
        told, stored = await log_and_history(session)
        kept = [part for message in await session.history() for part in message.parts]

    assert told == stored == "The river is high."
    assert [part.content for part in kept if isinstance(part, ThinkingPart)] == ["The gauge is broken."]


async def test_log_and_history_agree_when_stop_meets_a_response_that_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: what a failing model had said is dropped although the run is cancelled before that is committed."""
    flush, begun, failing = HeldCommit("flush"), Checkpoint(), Checkpoint()
    said = [text("The river "), gate(begun), text("is "), gate(failing), error(503)]
    async with Runtime(tmp_path / "app.db")([said, "The river is high."]) as outlast:
        notice = HeldNotice(outlast.database, monkeypatch)
        outlast.database.watcher = flush.watch
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await begun.reached()
        await wait_for_event(session, "part.delta")
        notice.begin()
        stopping = asyncio.create_task(session.stop())
        await notice.reached()
        flush.arm()
        begun.open()
        await flush.held()
        failing.open()
        await turns_of_the_loop()
        await notice.release()
        flush.release()
        outcome = await stopping
        told, stored = await log_and_history(session)
        types = await event_types(session)

    assert outcome is not None
    assert (outcome.state, outcome.text) == ("stopped", "")
    assert told == stored == ""
    assert types.count("part.started") == types.count("part.ended")


async def test_a_stop_right_after_the_claim_is_noticed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: a stop whose signal came before anybody listened is found when the attempt begins."""
    answering, claim, hold = Checkpoint(), HeldCommit("claim"), threading.Event()
    wait_only_for_signals(monkeypatch)

    def watch(name: str, moment: Moment) -> None:
        claim.watch(name, moment)
        if (name, moment) == ("hold", "after"):
            hold.set()

    runtime = Runtime(tmp_path / "app.db")
    async with runtime([[gate(answering), "Done."]], drain=0) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await answering.reached()

    claim.arm()
    watch_from_the_start(monkeypatch, watch)
    async with runtime(["Done."], deps=hanging_deps) as outlast, asyncio.timeout(60):
        await claim.held()
        session = await outlast.sessions.get(session.id)
        stopping = asyncio.create_task(session.stop())
        await asyncio.sleep(0)
        claim.release()
        assert hold.wait(10), "blocks this loop, so that both commits are told to it together"
        outcome = await stopping

    assert outcome is not None
    assert outcome.state == "stopped"


class CutsOff(AbstractCapability[Any]):
    """Cancels the code of the turn so many ticks after its run, or its request, began, as a worker that leaves does."""

    def __init__(self, attempts: list[Attempt]) -> None:
        self._attempts = attempts
        self.run: int | None = None
        self.request: int | None = None

    async def before_run(self, ctx: RunContext[Any]) -> None:
        ticks, self.run = self.run, None
        self._cut(ticks)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        ticks, self.request = self.request, None
        self._cut(ticks)
        return request_context

    def _cut(self, ticks: int | None) -> None:
        if ticks is None:
            return
        if ticks > 0:
            asyncio.get_running_loop().call_soon(self._cut, ticks - 1)
            return
        self._attempts[-1].cancel(Cause.SHUTDOWN)


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Attempt]:
    """All that run, as they begin."""
    found: list[Attempt] = []
    run = Attempt.run

    async def noted(attempt: Attempt) -> None:
        found.append(attempt)
        await run(attempt)

    monkeypatch.setattr(Attempt, "run", noted)
    return found


def running_turns() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("turn ")]


@pytest.mark.parametrize("place", ["run", "request"])
async def test_nothing_goes_on_of_a_turn_that_is_cut_off_in_whatever_moment(
    tmp_path: Path, place: str, attempts: list[Attempt]
) -> None:
    """P6: pydantic-ai's own tasks around it are gone too; the attempt after it answers."""
    cuts = CutsOff(attempts)
    agent = Agent(ScriptedModel(lambda messages: "Done."), name="agent", capabilities=[cuts])
    async with Runtime(tmp_path / "outlast.db")(agent=agent) as outlast:
        session = await outlast.sessions.create()
        for ticks in range(1, 12):
            setattr(cuts, place, ticks)
            assert (await (await session.send("Hello.")).outcome(wait=30)).output == "Done."
            await asyncio.gather(*running_turns())
            left = [task for task in asyncio.all_tasks() if "ScopedTask" in repr(task.get_coro())]
            assert not left, f"cut off after {ticks} ticks"
