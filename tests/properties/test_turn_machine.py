"""Random lives of two sessions against a model: nothing lost, nothing twice, one turn at a time, one end each."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from pydantic_core import from_json

from outlast import ids
from outlast.errors import AttemptLost, Conflict, SessionBusy
from outlast.events.types import TERMINAL
from outlast.ids import InputId, SessionId, TurnId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.repositories.inputs import Input, InputKind, Mode
from outlast.store.repositories.turns import TurnState
from outlast.store.tables import events, inputs, sessions, turns
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import inbox
from tests.support.stores.runner import Runner, claimed
from tests.support.stores.store import Outbox, new_session, opened, under

T = TypeVar("T")
LIMITS = Limits(max_inbox=1_000, max_busy_per_minute=100_000, max_running_per_owner=1, max_queued_per_owner=100)
SESSIONS = st.integers(0, 1)
MODES = st.sampled_from([Mode.STEER, Mode.STEER, Mode.QUEUE, Mode.INTERRUPT, Mode.REJECT])


@dataclass(frozen=True)
class Look:
    """Everything there is of both sessions, at one moment."""

    sessions: dict[str, Any]
    inputs: list[Any]
    turns: list[Any]
    events: list[Any]


class Life(RuleBasedStateMachine):
    """Two sessions of one owner with room for one running turn, so that admission is tried too."""

    def __init__(self, database: Database, run: Callable[[Awaitable[Any]], Any], files: Path) -> None:
        super().__init__()
        self.database = database
        self.run = run
        self.files = files
        self.owner = ids.reference_id()
        self.outbox = Outbox()
        database.attach(self.outbox)
        self.sessions: list[SessionId] = [self.run(new_session(database, owner_id=self.owner)) for _ in range(2)]
        self.waiting: dict[InputId, SessionId] = {}
        self.delivered: set[InputId] = set()
        self.removed: set[InputId] = set()
        self.runners: list[Runner] = []

    def transaction(self, fn: Callable[[Unit], T]) -> T:
        return self.run(self.database.transaction(fn, name="step"))

    def rows(self, query: Any) -> list[Any]:
        def read(connection: sa.Connection) -> list[Any]:
            found: Any = connection.execute(query)
            return list(found)

        return self.run(self.database.read(read))

    @rule(which=SESSIONS, mode=MODES)
    def send(self, which: int, mode: Mode) -> None:
        session_id = self.sessions[which]
        is_busy = self.rows(sa.select(sessions.c.turn_id).where(sessions.c.id == session_id))[0].turn_id is not None
        try:
            accepted = self.transaction(
                lambda unit: inbox.accept(under(LIMITS, unit), session_id, "hello", owner_id=self.owner, mode=mode)
            )
        except SessionBusy:
            assert is_busy
            assert mode is Mode.REJECT
            return
        assert not (is_busy and mode is Mode.REJECT)
        assert (accepted.turn_id is None) == is_busy
        self.waiting[accepted.input.id] = session_id

    @rule(which=SESSIONS)
    def wake(self, which: int) -> None:
        session_id = self.sessions[which]
        kept = self.transaction(
            lambda unit: inbox.notify(under(LIMITS, unit), session_id, InputKind.WAKE, "a task ended")
        )
        self.waiting[kept.id] = session_id

    @rule(which=SESSIONS)
    def stop(self, which: int) -> None:
        session_id = self.sessions[which]
        stopped = self.transaction(lambda unit: turn.request_stop(under(LIMITS, unit), session_id, owner_id=self.owner))
        row = self.rows(sa.select(sessions.c.is_held, sessions.c.turn_id).where(sessions.c.id == session_id))[0]
        if stopped is not None:
            assert row.is_held, "nothing starts until the owner sends or resumes"

    @rule(which=SESSIONS)
    def resume(self, which: int) -> None:
        session_id = self.sessions[which]
        self.transaction(lambda unit: turn.resume(under(LIMITS, unit), session_id, owner_id=self.owner))

    @rule(which=SESSIONS)
    def retry(self, which: int) -> None:
        session_id = self.sessions[which]
        try:
            self.transaction(lambda unit: turn.retry(under(LIMITS, unit), session_id, owner_id=self.owner))
        except Conflict:
            return

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        input_id = data.draw(st.sampled_from(sorted(self.waiting)))
        kind = self.rows(sa.select(inputs.c.kind).where(inputs.c.id == input_id))[0].kind
        if kind == InputKind.MESSAGE:
            session_id = self.waiting.pop(input_id)
            self.transaction(lambda unit: inbox.remove(unit, session_id, input_id, owner_id=self.owner))
            self.removed.add(input_id)

    @precondition(lambda self: self.outbox.enqueued)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """Any work that was ever handed to the engine, also twice, also long over."""
        work = data.draw(st.sampled_from(self.outbox.enqueued[-2:]))
        state = self.rows(sa.select(turns.c.state).where(turns.c.id == work.id))[0].state
        runner = self.run(claimed(self.database, TurnId(work.id), LIMITS, self.files))
        assert (runner is not None) == (state == TurnState.QUEUED)
        if runner is not None:
            self.runners.append(runner)

    @precondition(lambda self: self.outbox.enqueued)
    @rule()
    def work(self) -> None:
        """What an engine does first with what it was handed last: claim, and take what is due."""
        runner = self.run(claimed(self.database, TurnId(self.outbox.enqueued[-1].id), LIMITS, self.files))
        if runner is not None:
            self.runners.append(runner)
            self._took(self.run(runner.deliver()))

    def _took(self, due: Sequence[Input]) -> None:
        for each in due:
            del self.waiting[each.id]
            self.delivered.add(each.id)

    def _is_live(self, runner: Runner) -> bool:
        row = self.rows(sa.select(turns.c.state, turns.c.attempt).where(turns.c.id == runner.turn_id))[0]
        return row.state == TurnState.RUNNING and row.attempt == runner.claim.fence.attempt

    def _attempt(self, data: st.DataObject, step: Callable[[Runner], Awaitable[T]]) -> T | None:
        """A step of any runner. One that was superseded, or whose turn is over, is refused."""
        runner = data.draw(st.sampled_from(self.runners[-2:]))
        is_live = self._is_live(runner)
        last = sa.select(sessions.c.last_event).where(sessions.c.id == runner.claim.fence.session_id)
        before = self.rows(last)
        try:
            result = self.run(step(runner))
        except AttemptLost:
            assert not is_live
            assert runner.was_lost, "it learns that it must stop"
            assert self.rows(last) == before
            return None
        assert is_live
        return result

    @precondition(lambda self: self.runners)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        self._took(self._attempt(data, Runner.deliver) or ())

    @precondition(lambda self: self.runners)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self._attempt(data, Runner.end)

    @precondition(lambda self: self.runners)
    @rule(data=st.data(), final=st.sampled_from([TurnState.FAILED, TurnState.STOPPED]))
    def finish(self, data: st.DataObject, final: TurnState) -> None:
        self._attempt(data, lambda runner: runner.finish(final))

    @precondition(lambda self: self.runners)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        self._attempt(data, Runner.crash)

    @invariant()
    def the_promises_hold(self) -> None:
        look = self.run(self.database.read(self._look))
        self._every_input_is_where_it_should_be(look)
        for session_id in self.sessions:
            self._one_turn_at_a_time_with_one_end_each(look, session_id)
        self._admission_is_neither_exceeded_nor_forgotten(look)

    def _look(self, connection: sa.Connection) -> Look:
        def rows(table: sa.Table, column: sa.Column[Any], *values: str) -> list[Any]:
            return list(connection.execute(sa.select(table).where(column.in_(values))))

        return Look(
            sessions={row.id: row for row in rows(sessions, sessions.c.id, *self.sessions)},
            inputs=rows(inputs, inputs.c.session_id, *self.sessions),
            turns=rows(turns, turns.c.session_id, *self.sessions),
            events=rows(events, events.c.session_id, *self.sessions),
        )

    def _every_input_is_where_it_should_be(self, look: Look) -> None:
        """D1: accepted means waiting, delivered once, or removed by its owner; never lost, never twice."""
        assert {row.id: row.state for row in look.inputs} == {
            **dict.fromkeys(self.waiting, "waiting"),
            **dict.fromkeys(self.delivered, "delivered"),
            **dict.fromkeys(self.removed, "removed"),
        }
        told = Counter(from_json(row.data)["input_id"] for row in look.events if row.type == "input.delivered")
        assert told == Counter({str(each): 1 for each in self.delivered})

    def _one_turn_at_a_time_with_one_end_each(self, look: Look, session_id: SessionId) -> None:
        """P5, E3, D5: one open turn, named by its session; one terminal event per ended turn; holds are kept."""
        session = look.sessions[session_id]
        own = [row for row in look.turns if row.session_id == session_id]
        still_open = [row.id for row in own if row.ended_at is None]
        assert still_open == ([] if session.turn_id is None else [session.turn_id])
        logged = sorted((row for row in look.events if row.session_id == session_id), key=lambda row: row.number)
        assert [row.number for row in logged] == list(range(1, session.last_event + 1))
        ends = Counter(row.turn_id for row in logged if row.type in TERMINAL)
        assert ends == Counter(row.id for row in own if row.ended_at is not None)
        if session.turn_id is None and not session.is_held:
            waits = [each for each, where in self.waiting.items() if where == session_id]
            assert not waits, "an idle session that is not on hold has nothing waiting"

    def _admission_is_neither_exceeded_nor_forgotten(self, look: Look) -> None:
        """D13: at most so many are handed to the engine, and nobody waits while there is a place."""
        still_open = [row for row in look.turns if row.ended_at is None]
        admitted = {row.id for row in still_open if row.admitted_at is not None}
        assert len(admitted) <= 1
        assert admitted or not still_open
        assert admitted <= {work.id for work in self.outbox.enqueued}


def test_random_lives_keep_the_promises(sqlite_url: str, tmp_path: Path) -> None:
    """P3, P5, D1, D5, D13, E3 over random sequences of senders, runners, crashes and stops."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        opening = opened(sqlite_url)
        database = runner.run(opening.__aenter__())
        try:

            class Here(Life):
                def __init__(self) -> None:
                    super().__init__(database, lambda step: runner.run(_awaited(step)), tmp_path / "files")

            run_state_machine_as_test(
                Here,
                settings=settings(
                    deadline=None,
                    max_examples=25,
                    stateful_step_count=40,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
                    database=None,
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def _awaited(step: Awaitable[T]) -> T:
    return await step
