"""A claimed turn from what is committed of it: its history, its open calls, what it has used so far.

Reading waits for a store that is unavailable; a turn does not fail for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic_ai.messages import ModelMessage, ModelResponse

from outlast.agents.lease import DepsLease
from outlast.agents.messages import history
from outlast.agents.messages.window import Window
from outlast.agents.messages.window import load as load_window
from outlast.agents.resource import LiveResource
from outlast.agents.usage import usage_of
from outlast.calls.running.repeats import Repeats
from outlast.events.event import Event
from outlast.events.outcome import Usage
from outlast.events.types import EventType
from outlast.runs.turns.call_answers import CallAnswers
from outlast.runs.turns.call_log import CallLog
from outlast.runs.turns.loop import TurnRun
from outlast.runs.turns.responses import Responses
from outlast.runs.turns.resume import OpenCallBook, read_book
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.runs.turns.turn_usage import TurnUsage
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.files.spill import unpack_object
from outlast.store.repositories import events, summaries, tasks
from outlast.store.repositories.stored_task import Task
from outlast.transitions.turn import Claim, Fence

_OF_CALLS = (EventType.CALL_STARTED.value, EventType.CALL_ENDED.value)


async def load(
    parts: WorkerParts, claim: Claim, log: TurnLog, lease: DepsLease, *, has_history: bool = True
) -> TurnRun:
    """A run that goes on where the committed history ends; what every open call came to stands in its book."""
    fence = claim.fence
    window = Window()
    if has_history:
        window = await retry_while_unavailable(
            lambda: load_window(
                parts.database,
                parts.files,
                fence.session_id,
                turn_id=fence.turn_id,
                most=parts.policy.history_window,
            )
        )
    entries, messages = window.entries, window.messages
    before = len(messages) - len(entries)
    own_from = before + next((at for at, each in enumerate(entries) if each.turn_id == fence.turn_id), len(entries))
    repeats = Repeats()
    for each in messages[own_from:]:
        if isinstance(each, ModelResponse):
            repeats.count(history.calls_of(each))
    book = OpenCallBook()
    if history.open_calls(messages):
        book = await _book(parts, fence, messages[before:], entries, repeats)
    used = TurnUsage(log, claim.owner_id, _usage(messages[own_from:]), requests=claim.turn.requests)
    for usage in await _used_before(parts, claim, has_own=own_from < len(messages)):
        used.total.add(usage)
        used.requests_of_calls += usage["requests"]
    calls = TurnCalls(parts.calls, log, claim.agent, claim.owner_id, lease, press_after=parts.policy.steer_parks_after)
    calls.repeats = repeats
    run = TurnRun(
        claim=claim,
        log=log,
        policy=parts.policy,
        threads=parts.threads,
        calls=calls,
        answers=CallAnswers(log, CallLog(log, calls), calls, used, book),
        responses=Responses(claim, log, used, parts.policy.idle_timeout),
        used=used,
        control=parts.control,
        instructions=parts.instructions,
        resource=LiveResource(parts.resources, claim.owner_id, fence.session_id, parts.secrets),
        output_types=parts.hosts[claim.agent].output_types,
        messages=messages,
        window=window,
        own_from=own_from,
        has_begun=own_from < len(messages),
    )
    await run.answers.call_log.tell_parked(book)
    return run


async def _book(
    parts: WorkerParts, fence: Fence, messages: list[ModelMessage], entries: Sequence[history.Entry], repeats: Repeats
) -> OpenCallBook:
    open_now = history.open_calls(messages)
    entry = entries[max(at for at, message in enumerate(messages) if isinstance(message, ModelResponse))]

    def is_of_these(task: Task) -> bool:
        """Not of an earlier call with the same id."""
        is_of_turn = task.turn_id in (entry.turn_id, fence.turn_id)
        return is_of_turn and task.repeat == repeats.of(task.call_id or "")

    def read(connection: sa.Connection) -> tuple[list[Event], list[Task]]:
        turn_id = entry.turn_id or fence.turn_id
        logged = events.of_turn(connection, fence.session_id, turn_id, _OF_CALLS, after=entry.event)
        parked = [tasks.of_call(connection, fence.session_id, each.tool_call_id) for each in open_now]
        return logged, [each for each in parked if each is not None and is_of_these(each)]

    logged, parked = await retry_while_unavailable(lambda: parts.database.read(read))
    whole = [
        replace(each, data=await retry_while_unavailable(lambda each=each: unpack_object(parts.files, each.data)))
        for each in logged
    ]
    return read_book(messages, whole, parked)


async def _used_before(parts: WorkerParts, claim: Claim, *, has_own: bool) -> list[dict[str, Any]]:
    """What stands in no message of the turn: its earlier attempts had summaries made, and its tools ran agents."""
    fence, first = claim.fence, claim.turn.first_event
    if fence.attempt == 1 and not has_own:
        return []

    def read(connection: sa.Connection) -> list[dict[str, Any]]:
        made = summaries.usage_of_turn(connection, fence.session_id, fence.turn_id)
        ended = (EventType.CALL_ENDED.value,)
        calls = events.of_turn(connection, fence.session_id, fence.turn_id, ended, after=first - 1)
        used = [each.data["usage"] for each in calls if each.data.get("usage")]
        return [*({"requests": 1, **each} for each in made), *used]

    return await retry_while_unavailable(lambda: parts.database.read(read))


def _usage(own: Sequence[ModelMessage]) -> Usage:
    """What the stored responses of a turn used: the row may be a response behind when a worker died."""
    usage = Usage()
    for message in own:
        if isinstance(message, ModelResponse):
            usage.add(usage_of(message))
    return usage
