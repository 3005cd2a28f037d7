"""One attempt of a turn: claim it, run it, and bring it to a truthful end whatever happens to it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

import sqlalchemy as sa
import structlog
from pydantic_ai.models import Model
from structlog.contextvars import bound_contextvars

from outlast import trace
from outlast.agents import failure
from outlast.agents.compact import CHARACTERS_PER_TOKEN
from outlast.agents.host import AgentHost, TurnContext
from outlast.agents.messages import history
from outlast.agents.size import schema_size
from outlast.calls.record import Unconfirmed
from outlast.containment import Contained
from outlast.errors import AttemptLost, StoreUnavailable
from outlast.events.signals import turn_topic
from outlast.ids import TaskId
from outlast.runs.turns.boundary import HandOver, Step, StopAsked
from outlast.runs.turns.fitting import Bounds, fit
from outlast.runs.turns.load import load
from outlast.runs.turns.loop import TurnRun
from outlast.runs.turns.open_calls import answer_open_calls, carry_over, keep_partial, log_known_ends
from outlast.runs.turns.titles import make_title
from outlast.runs.turns.turn_log import TurnLog
from outlast.runs.unconfirmed import make_tasks, own_as_tasks, own_without_task
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import inputs, spending, turns
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.turns import TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turn import Claim
from outlast.transitions.turns import turn_failure, turn_start
from outlast.transitions.turns.due import due_at_boundary

T = TypeVar("T")
log = structlog.get_logger("outlast.turns")


_WORTH_FOLDING = 8
_TITLE_SECONDS = 10
"""After the end of its first turn, how long a title may still be made."""
_MOST_SHORTENED = 2
"""Times that a turn shortens what a provider refused as too long: results first, then by a summary."""


class Cause(StrEnum):
    """Who ends an attempt before its turn is over."""

    USER = "user"
    INTERRUPT = "interrupt"
    SHUTDOWN = "shutdown"
    LOST = "lost"


class Attempt:
    """Runs one claimed turn to its end, or hands it over. `run` never raises for what happened in the turn."""

    def __init__(self, parts: WorkerParts, claim: Claim) -> None:
        self.claim = claim
        self._parts = parts
        # Before anything is awaited: from the claim on, no signal is missed.
        self._asked = parts.signals.subscribe(turn_topic(claim.fence.turn_id))
        self._cause: Cause | None = None
        self._driving: asyncio.Task[None] | None = None
        self._run: TurnRun | None = None
        context = TurnContext(claim.owner_id, claim.fence.session_id, claim.fence.turn_id, claim.agent)
        self._lease = parts.hosts[claim.agent].lease(context)
        self._log = TurnLog(
            parts.database,
            parts.files,
            claim.fence,
            parts.secrets,
            parts.policy.coalesce,
            when_lost=lambda: self.cancel(Cause.LOST),
        )

    async def run(self) -> None:
        turn_id = self.claim.fence.turn_id
        self._driving = asyncio.create_task(self._drive(), name=f"turn {turn_id}")
        watching = asyncio.create_task(self._watch(), name=f"watch {turn_id}")
        try:
            await asyncio.wait({self._driving})
            try:
                await self._conclude(self._driving)
            except (AttemptLost, StoreUnavailable):
                raise
            except Exception as exc:
                await self._give_up(exc)
        except AttemptLost:
            log.info("attempt superseded", turn_id=turn_id, attempt=self.claim.fence.attempt)
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            if self._run is not None:
                self._run.calls.close()
            await self._log.close()
            self._disown()

    @property
    def has_many_deltas(self) -> bool:
        """Whether folding this attempt's text would save rows worth a transaction."""
        return self._log.deltas >= _WORTH_FOLDING

    def look(self) -> None:
        """Find out at once whether it must stop: the signal may have come between the claim's commit and now."""
        self._asked.notify()

    def leave(self) -> None:
        """The worker is leaving: hand over at the next boundary."""
        if self._run is not None:
            self._run.is_leaving = True

    def cancel(self, cause: Cause) -> None:
        """Cancel the running code; the first cause counts, and only one that is not over yet can be cancelled."""
        if cause in (Cause.USER, Cause.INTERRUPT) and self._run is not None and self._run.is_stopping:
            return  # it is on its way: what it cleans up is not cut off
        if self._cause is None and self._driving is not None and not self._driving.done():
            self._cause = cause
            self._driving.cancel()

    async def _watch(self) -> None:
        """Learn that the turn must stop: asked to, or superseded."""
        fence = self.claim.fence
        while True:
            await self._asked.wait()
            row = await self._read(lambda connection: turns.get(connection, fence.turn_id))
            if row is not None and row.attempt == fence.attempt and row.is_over:
                return
            if row is None or row.attempt != fence.attempt or row.state is not TurnState.RUNNING:
                self.cancel(Cause.LOST)
            elif row.stop_requested_at is not None:
                self.cancel(_cause_of(row.stop_reason))
            elif self._run is not None and _has_word(await self._waiting()):
                self._run.calls.press()

    async def _drive(self) -> None:
        fence = self.claim.fence
        attributes = {
            "outlast.agent": self.claim.agent,
            "outlast.session_id": fence.session_id,
            "outlast.turn_id": fence.turn_id,
            "outlast.attempt": fence.attempt,
        }
        with (
            Contained(),
            trace.turn_span((each.body for each in self.claim.waiting), attributes),
            bound_contextvars(session_id=fence.session_id, turn_id=fence.turn_id),
        ):
            await self._drive_it()

    async def _drive_it(self) -> None:
        claim, parts = self.claim, self._parts
        run = self._run = await self._load(has_history=claim.has_history)
        if claim.turn.stop_requested_at is not None:
            self._cause = _cause_of(claim.turn.stop_reason)
            raise asyncio.CancelledError
        if claim.turn.crashes >= parts.database.limits.max_claims:
            raise turn_failure.crash_loop(claim.turn.crashes)
        host = parts.hosts[claim.agent]
        await host.enter()
        titling: asyncio.Task[None] | None = None
        try:
            deps = await self._lease.open()
            waiting = claim.waiting
            titling = self._title()
            while await self._step(run, host, deps, waiting) is Step.GOES_ON:
                waiting = await self._waiting()
            if titling is not None:
                await asyncio.wait({titling}, timeout=_TITLE_SECONDS)
        finally:
            if titling is not None and not titling.done():
                titling.cancel()
                await asyncio.wait({titling})
            await self._lease.let_go()

    def _title(self) -> asyncio.Task[None] | None:
        """Beside the first turn of a session, if a model makes titles. The turn does not wait for it to end."""
        model, said = self._parts.title_model, [each for each in self.claim.waiting if each.kind is InputKind.MESSAGE]
        if model is None or self.claim.has_history or not said:
            return None
        making = make_title(self._parts, self.claim, model, said[0].text)
        return asyncio.create_task(making, name=f"title {self.claim.fence.session_id}")

    async def _step(self, run: TurnRun, host: AgentHost, deps: Any, waiting: Sequence[Input]) -> Step:
        """One run of the agent; a transient failure of the model is tried again from what is committed."""
        retries = 0
        while True:
            answered = run.used.total.requests
            await self._fit(run, host)
            try:
                step = await run.run(host, deps, self._model(host), waiting)
            except Exception as exc:
                if run.responses.is_streamed and failure.cannot_stream(exc):
                    run.responses.ask_whole_from_now_on()
                    waiting = await self._waiting()
                    continue
                if run.used.total.requests > answered:
                    retries = 0
                wait = self._retry_in(run, exc, retries)
                if wait is None:
                    raise
                retries += 1
                await run.responses.drop(_reason(exc), retry_in=wait)
                if history.open_calls(run.messages):
                    await carry_over(run)
                await asyncio.sleep(wait)
                waiting = await self._waiting()
                continue
            if step is Step.NOTHING_TO_DO:
                return await self._log.commit(
                    "turn.end", lambda unit: run.end_turn(unit, TurnState.COMPLETED, {"output": None})
                )
            return step

    def _retry_in(self, run: TurnRun, exc: Exception, retries: int) -> float | None:
        policy = self._parts.policy
        if failure.is_too_long(exc) and run.shortened < (_MOST_SHORTENED if run.has_earlier_turns else 1):
            run.is_too_long = True
            run.shortened += 1
            return 0.0
        if not failure.is_transient(exc) or retries >= policy.model_retries:
            return None
        return policy.model_backoff.total_seconds() * 2**retries

    async def _fit(self, run: TurnRun, host: AgentHost) -> None:
        """History that does not fit is shortened; what the provider refused as too long, once more by a summary."""
        policy, model = self._parts.policy, cast(Any, host.model_for(self._model(host)))
        window = policy.context_window or (model.context_window if isinstance(model, Model) else None)
        characters = None if window is None else int(window * policy.compact_above * CHARACTERS_PER_TOKEN)
        overhead = host.overhead or host.declared_size + _size_of(run)
        room = None if characters is None else max(characters - overhead, characters // 4)
        is_forced = run.is_too_long and run.shortened > 1
        bounds = Bounds(policy.history_window, room)
        chosen = cast(Any, self._parts.summary_model or model)
        await fit(run, chosen, bounds=bounds, is_forced=is_forced)

    def _model(self, host: AgentHost) -> Model | str | None:
        """The model recorded for the turn, else the agent's own."""
        name = self.claim.turn.model
        return None if name is None else host.models.get(name)

    async def _load(self, *, has_history: bool = True) -> TurnRun:
        return await load(self._parts, self.claim, self._log, self._lease, has_history=has_history)

    async def _waiting(self) -> list[Input]:
        session_id = self.claim.fence.session_id
        return await self._read(lambda connection: inputs.waiting(connection, session_id))

    async def _read(self, fn: Callable[[sa.Connection], T]) -> T:
        """A running turn waits for a store that is unavailable; it does not fail for it."""
        return await retry_while_unavailable(lambda: self._parts.database.glance(fn))

    async def _conclude(self, driving: asyncio.Task[None]) -> None:
        """The driving coroutine is over: bring the turn to the end that fits."""
        if self._cause is Cause.LOST:
            raise AttemptLost("Another attempt of this turn has taken over.")
        if driving.cancelled():
            if self._cause is Cause.USER or self._cause is Cause.INTERRUPT:
                await self._stopped(self._cause)
            elif self._cause is None:
                await self._failed(self._describe(RuntimeError("Something in the turn cancelled it by itself.")))
            else:
                await self._hand_over()
            return
        exc = driving.exception()
        if exc is None or isinstance(exc, AttemptLost):
            return
        if isinstance(exc, StoreUnavailable) and exc.is_closed:
            raise exc  # that is no failure of the turn: whoever opens the store next goes on with it
        if isinstance(exc, HandOver):
            await self._hand_over()
        elif isinstance(exc, StopAsked):
            await self._stopped(_cause_of(exc.reason))
        else:
            await self._failed(self._describe(exc))

    async def _stopped(self, cause: Cause) -> None:
        """Keep what was said, say truthfully what became of open calls, and end as stopped."""
        run = self._run or await self._load()
        await keep_partial(run)
        await self._end(run, "stop", TurnState.STOPPED, {"reason": cause.value})

    async def _end(self, run: TurnRun, name: str, target: TurnState, data: dict[str, Any]) -> None:
        """Settle open calls and end the turn in one commit; calls that go on become silent tasks in it."""
        owned = await answer_open_calls(run)
        run.count_outputs()

        def end(unit: Unit) -> None:
            make_tasks(unit, self.claim, owned, self._parts.calls)
            if data.get("kind") == turn_failure.CRASH_LOOP and not run.has_begun:
                # Not rendered: that may be what ends processes. It waits in the inbox until a person says what next.
                turn_start.hold(unit, unit.lock(self.claim.fence.session_id), turn_failure.CRASH_LOOP)
            elif target is TurnState.FAILED:
                run.take_inputs(unit)
            run.end_turn(unit, target, data)

        await self._log.commit(name, end)
        self._detach(run, owned)

    async def _failed(self, why: turn_failure.Failure) -> None:
        is_given_up = self._run is None
        run = self._run or await self._load()
        if run.responses.arriving is not None or is_given_up:
            await run.responses.drop(why.kind)
        await self._end(run, "turn.end", TurnState.FAILED, why.data)

    async def _give_up(self, exc: Exception) -> None:
        """What this attempt wanted to write cannot be written: fail the turn from what is committed, or it hangs."""
        await self._log.discard()
        self._disown()
        self._run = None
        try:
            await self._failed(self._describe(exc))
        except (AttemptLost, StoreUnavailable):
            raise
        except Exception as again:
            await self._end_unread(self._describe(again))

    async def _end_unread(self, why: turn_failure.Failure) -> None:
        """History itself cannot be read: end the turn without it. Held, or what waits would start the next one."""
        fence = self.claim.fence
        data = {**why.data, "usage": self.claim.turn.usage}

        def end(unit: Unit) -> None:
            turn_start.hold(unit, unit.lock(fence.session_id), "unreadable")
            turn.end(unit, self.claim, TurnState.FAILED, data, values={})

        await self._log.discard()
        await self._log.commit("turn.end", end)

    def _describe(self, exc: BaseException) -> turn_failure.Failure:
        return failure.describe(exc, self.claim.fence.turn_id, self._parts.secrets)

    async def _hand_over(self) -> None:
        """Leave the turn to the next worker, with the ends of calls that are known."""
        run = self._run
        if run is not None:
            if run.responses.arriving is not None:
                await run.responses.drop("handed_over")
            await log_known_ends(run)
            run.count_outputs()
        uncounted = [] if run is None else run.calls.uncounted(elsewhere=_going_on(run))

        def give_back(unit: Unit) -> None:
            row = turns.get(unit.connection, self.claim.fence.turn_id)
            assert row is not None
            for spent in uncounted:
                spending.add_spent(unit, self.claim.owner_id, spent)
            turn.requeue(unit, row, has_crashed=False)

        await self._log.commit("hand_over", give_back)

    def _detach(self, run: TurnRun, owned: Mapping[TaskId, Unconfirmed]) -> None:
        own_as_tasks(owned, self._parts.calls)
        for unconfirmed in owned.values():
            assert run.hook is not None
            del run.hook.records.by_id[unconfirmed.call.call_id]

    def _disown(self) -> None:
        hook = self._run.hook if self._run is not None else None
        if hook is not None:
            own_without_task(hook.records.running_on(), self._parts.calls)


def _going_on(run: TurnRun) -> set[str]:
    """The ids of calls that go on without the turn."""
    return set() if run.hook is None else run.hook.records.going_on()


def _size_of(run: TurnRun) -> int:
    """About how many characters the runtime's own tools and instructions take in each request."""
    return len(run.instructions or "") + sum(schema_size(each.tool_def) for each in run.control.tools.values())


def _cause_of(stop_reason: str | None) -> Cause:
    return Cause.INTERRUPT if stop_reason == "interrupt" else Cause.USER


def _has_word(waiting: Sequence[Input]) -> bool:
    """Whether a person waits to be heard by the running turn."""
    return any(each.kind is InputKind.MESSAGE for each in due_at_boundary(waiting))


def _reason(exc: Exception) -> str:
    return "too_long" if failure.is_too_long(exc) else "model_error"
