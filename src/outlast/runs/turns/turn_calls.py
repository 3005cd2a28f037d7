"""The turn's side of its calls: their channels, their parking, and what the model is shown of their results."""

import asyncio
from collections.abc import Container, Sequence
from datetime import timedelta
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ToolCallPart

from outlast import ids
from outlast.agents.lease import DepsLease
from outlast.agents.messages import history
from outlast.calls.call import RunningCall
from outlast.calls.deferrable import schema_of
from outlast.calls.gates.earlier_calls import EarlierCalls
from outlast.calls.gates.gate import CallRequest, Wait
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.calls.gates.standing import GateContext
from outlast.calls.narration import narrated
from outlast.calls.parking import NotParked, Parked, asking_handle, awaiting_handle, handle_of, outside_handle
from outlast.calls.running.repeats import Repeats
from outlast.calls.shared_usage import take_used
from outlast.calls.within.channel import CallChannel
from outlast.calls.within.files import has_files
from outlast.clock import monotonic
from outlast.events.types import EventType
from outlast.ids import SessionId, TaskId
from outlast.runs.call_parts import CallParts, bind_channel
from outlast.runs.owned import Owned
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import outputs, tasks, turns
from outlast.store.repositories.spending import Spent
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.store.unit import Unit
from outlast.tool_hints import Hints
from outlast.transitions import questions
from outlast.transitions.tasks import requests, task_moves
from outlast.transitions.tasks.parked import Reason, facts_of

TOO_MANY = "too_many_open_tasks"


class TurnCalls:
    """`CallHost` and `Parking` for the calls of one attempt of a turn."""

    def __init__(
        self, parts: CallParts, log: TurnLog, agent: str, owner_id: str, lease: DepsLease, *, press_after: timedelta
    ) -> None:
        self._parts = parts
        self._log = log
        self._agent = agent
        self._owner_id = owner_id
        self._lease = lease
        self._press_after = press_after.total_seconds()
        self._pressing: asyncio.TimerHandle | None = None
        self._begun: dict[str, RunningCall] = {}
        self.repeats = Repeats()
        self.pressed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def press(self) -> None:
        """A person waits to be heard: soon, calls that may be parked are parked."""
        if self._pressing is None:
            loop = asyncio.get_running_loop()
            self._pressing = loop.call_later(self._press_after, self._press_now)

    def relax(self) -> None:
        """The step is committed, and what pressed was delivered."""
        self._begun.clear()
        self.close()
        if self.pressed.done():
            self.pressed = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        if self._pressing is not None:
            self._pressing.cancel()
            self._pressing = None

    def _press_now(self) -> None:
        if not self.pressed.done():
            self.pressed.set_result(None)

    def _press_again(self) -> None:
        """Somebody has waited since before this call began: it may take as long as a new message lets it."""
        if self.pressed.done():
            self.close()
            self.pressed = asyncio.get_running_loop().create_future()
            self.press()

    def told(self, call_id: str) -> list[TaskId]:
        """The tasks whose outcome the result of this call carries to the model."""
        call = self._begun.get(call_id)
        return [] if call is None else call.told

    def artifacts(self, call_id: str) -> list[dict[str, Any]]:
        """The files that a call made within its budget."""
        call = self._begun.get(call_id)
        return call.channel.artifacts if call is not None and isinstance(call.channel, CallChannel) else []

    def used(self, call_id: str) -> Spent | None:
        """What the agents that a call ran came to, for whoever counts it."""
        call = self._begun.get(call_id)
        return None if call is None else take_used(call)

    def uncounted(self, elsewhere: Container[str]) -> list[Spent]:
        """The same of calls whose end is not told here; those elsewhere are counted where they go on."""
        left = [take_used(call) for call_id, call in self._begun.items() if call_id not in elsewhere]
        return [each for each in left if each is not None]

    def gate_context(
        self, messages: Sequence[ModelMessage], own: Sequence[ModelMessage], *, is_whole: bool = True
    ) -> GateContext:
        """`messages`: those of the session, growing as they are committed. `own`: those of the turn so far.

        `is_whole=False`: the model is not sent what stands before them.
        """

        async def committed() -> Sequence[ModelMessage]:
            return messages

        async def all_of_them() -> Sequence[ModelMessage]:
            found = await retry_while_unavailable(
                lambda: history.load(database, self._parts.home.files, fence.session_id)
            )
            return [each.message for each in found]

        fence, database = self._log.fence, self._parts.home.database
        constraints = LiveConstraints(database, fence.session_id, lambda: self._log.is_constrained)
        return GateContext(
            fence.session_id,
            self._owner_id,
            fence.turn_id,
            self._agent,
            database,
            constraints,
            EarlierCalls(database, fence.session_id, committed, None if is_whole else all_of_them),
            self._parts.connections,
            own,
        )

    def begin(self, call: ToolCallPart) -> RunningCall:
        self._press_again()
        earlier = self._begun.get(call.tool_call_id)
        fence = self._log.fence
        channel = CallChannel(
            self._parts.home,
            fence.session_id,
            call.tool_call_id,
            may_write=lambda unit: turns.may_write(unit, fence.turn_id, fence.attempt) is not None,
            tell_progress=lambda progress: self._log.add(
                EventType.CALL_PROGRESS, {"call_id": call.tool_call_id, "progress": progress}
            ),
        )
        questions, secrets = self._parts.questions, self._parts.home.secrets
        running = self._begun[call.tool_call_id] = RunningCall(
            fence.session_id,
            fence.turn_id,
            call.tool_call_id,
            call.tool_name,
            call.args,
            secrets,
            channel,
            self._parts.confirm_call,
            owner_id=self._owner_id,
            connections=self._parts.connections,
            slots=self._parts.slots,
            agent=self._agent,
            networks=self._parts.networks,
            files=self._parts.files,
            external=self._parts.external,
            questions=None if questions is None else questions.of_call(secrets),
            repeat=self.repeats.of(call.tool_call_id),
        )
        if earlier is not None:  # it runs again: what it used counts with its end
            running.used, earlier.used = earlier.used, {}
        return running

    def say_waiting(self, call: RunningCall, reason: str) -> None:
        data = {"call_id": call.call_id, "tool": call.tool, "reason": reason}
        self._log.add(EventType.CALL_WAITING, data)

    async def view(self, call: RunningCall, value: Any) -> Any:
        if has_files(value):
            return value
        viewed = await self._parts.viewer.view(call, value)
        file = viewed.file
        if file is not None:
            self._log.also(
                lambda unit: outputs.keep_result(
                    unit, call.session_id, call.call_id, file=file, characters=viewed.characters
                )
            )
        return viewed.value

    async def park(
        self, call: RunningCall, inner: asyncio.Task[Any], hints: Hints, budget: timedelta, *, reason: Reason
    ) -> Parked | NotParked:
        """In one transaction, behind the fence: a turn that is stopping or superseded cannot park."""
        task_id = ids.task_id()
        channel = cast(CallChannel, call.channel)
        deadline = hints.deadline or self._parts.deadline
        ran_for = timedelta(seconds=monotonic() - call.started)
        remaining = (deadline - ran_for).total_seconds()
        facts = facts_of(reason, ran_for)
        asked = None if call.questions is None or reason != "question" else call.questions.wanted.result()

        def make(unit: Unit) -> NotParked | None:
            refusal, fence = self._refusal(unit), self._log.fence
            if refusal is not None:
                return refusal
            new = NewTask(
                task_id,
                title=call.tool,
                turn_id=fence.turn_id,
                call_id=call.call_id,
                agent=self._agent,
                tool=call.tool,
                spec={
                    "args": call.args if hints.may_run_again else call.secrets.mask(call.args),
                    "budget_seconds": budget.total_seconds(),
                    "parked": facts,
                    **self.repeats.kept(call.call_id),
                    **narrated(call.tool, hints, call.args, call.secrets.mask),
                },
                wake=WakePolicy(hints.wake or WakePolicy.ON_TERMINAL),
                group=hints.group,
                may_run_again=hints.may_run_again,
                max_attempts=hints.max_attempts,
                progress=channel.last_progress,
                progress_seconds=_seconds(hints.progress_deadline),
                deadline_at=unit.now + timedelta(seconds=remaining),
                ran_for=ran_for,
            )
            task_moves.make(unit, fence.session_id, new, worker_id=self._parts.worker_id)
            if asked is not None:
                questions.ask(unit, task_id, asked, attempt=1, is_told=True)
            return None

        refusal = await self._log.commit("park", make)
        if refusal is not None:
            return refusal
        if call.questions is not None:
            call.questions.become_task(task_id, 1, asked)
        self._hand_over(call, inner, task_id, hints, remaining)
        if asked is not None:
            return Parked(task_id, asking_handle(task_id, call.tool, budget.total_seconds(), asked))
        return Parked(task_id, handle_of(task_id, call.tool, budget.total_seconds(), facts))

    async def wait(self, call: CallRequest, wait: Wait) -> Parked | NotParked:
        """The same for a call that has not begun: a task without a worker, with the request that it waits for."""
        task_id, secrets = ids.task_id(), self._parts.home.secrets

        def make(unit: Unit) -> NotParked | None:
            refusal = self._refusal(unit)
            if refusal is not None:
                return refusal if refusal.reason is None else NotParked(_full(unit, call.session_id))
            runs = call.hints.deadline or self._parts.deadline
            asked = requests.request_of(
                unit, wait.kind, wait.prompt, wait.details, secrets=secrets, waits=wait.deadline, runs=runs
            )
            new = NewTask(
                task_id,
                title=call.tool,
                turn_id=call.turn_id,
                call_id=call.call_id,
                agent=self._agent,
                tool=call.tool,
                spec={
                    "args": call.raw_args,
                    **schema_of(call),
                    **self.repeats.kept(call.call_id),
                    **narrated(call.tool, call.hints, call.raw_args, secrets.mask),
                },
                wake=WakePolicy(call.hints.wake or WakePolicy.ON_TERMINAL),
                group=call.hints.group,
                may_run_again=call.hints.may_run_again,
                max_attempts=call.hints.max_attempts,
                deadline_at=requests.deadline_of(asked),
                request=asked,
            )
            task_moves.make(unit, call.session_id, new, worker_id=None)
            return None

        refusal = await self._log.commit("wait", make)
        return refusal or Parked(task_id, awaiting_handle(task_id, call.tool, wait.kind))

    async def hand_out(self, call: CallRequest) -> Parked | NotParked:
        """A task without a worker, which somebody outside completes."""
        task_id, secrets = ids.task_id(), self._parts.home.secrets

        def make(unit: Unit) -> NotParked | None:
            refusal = self._refusal(unit)
            if refusal is not None:
                return refusal
            new = NewTask(
                task_id,
                title=call.tool,
                kind="external",
                turn_id=call.turn_id,
                call_id=call.call_id,
                agent=self._agent,
                tool=call.tool,
                spec={
                    "args": secrets.mask(call.raw_args),
                    **self.repeats.kept(call.call_id),
                    **narrated(call.tool, call.hints, call.raw_args, secrets.mask),
                },
                group=call.hints.group,
                deadline_at=unit.now + (call.hints.deadline or self._parts.deadline),
            )
            task_moves.make(unit, call.session_id, new, worker_id=None)
            return None

        refusal = await self._log.commit("hand_out", make)
        return refusal or Parked(task_id, outside_handle(task_id, call.tool))

    def _refusal(self, unit: Unit) -> NotParked | None:
        fence = self._log.fence
        row = turns.get(unit.connection, fence.turn_id)
        if row is None or row.stop_requested_at is not None:
            return NotParked(None)
        is_full = tasks.open_count(unit.connection, fence.session_id) >= self._parts.max_open_tasks
        return NotParked(TOO_MANY) if is_full else None

    def _hand_over(
        self, call: RunningCall, inner: asyncio.Task[Any], task_id: TaskId, hints: Hints, deadline_in: float
    ) -> None:
        channel = cast(CallChannel, call.channel)
        bind_channel(channel, self._parts, task_id, attempt=1)
        self._lease.share()
        self._parts.parked.own(
            Owned(call, inner, task_id, when_over=self._lease.let_go),
            deadline_in=deadline_in,
            progress_deadline=_seconds(hints.progress_deadline),
        )


def _full(unit: Unit, session_id: SessionId) -> str:
    """Why no further call can wait, with what is open."""
    found = tasks.page(unit.connection, session_id=session_id, is_open=True)
    listed = "; ".join(f"{each.id} ({each.title}, {each.state.value})" for each in found)
    return f"Not run: it would have to wait for somebody, and {len(found)} tasks are open already: {listed}."


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
