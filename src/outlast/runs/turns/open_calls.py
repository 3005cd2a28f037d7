"""Leaving nothing open: what was said is kept, and every call gets a truthful answer in history."""

from typing import Any

from pydantic_ai.messages import ModelRequest, ModelRequestPart, ModelResponse, ToolCallPart, ToolReturnPart

from outlast import ids
from outlast.agents.messages import history
from outlast.agents.messages.harmless import harmless
from outlast.calls import outcomes
from outlast.calls.record import CallRecords, Unconfirmed
from outlast.ids import TaskId
from outlast.runs.turns.loop import TurnRun
from outlast.runs.turns.resume import Recorded, returns_first


async def keep_partial(run: TurnRun) -> None:
    """What the model had said so far stays; calls it had not finished asking for never ran and are left out."""
    run.take_written()
    partial, streaming = run.responses.partial, run.responses.arriving
    if streaming is None:
        return
    if partial is None:
        # Nobody has the response: the run was cancelled between its last word and its end, or while dropping it.
        if streaming.parts:
            await run.responses.drop("stopped")
        return
    streaming.end_all()
    told = streaming.told_of(partial.parts)
    said = [part for part in told if not isinstance(part, ToolCallPart) and _says_something(part)]
    if said:
        kept = ModelResponse(
            parts=said, usage=partial.usage, model_name=partial.model_name, timestamp=partial.timestamp
        )
        await run.responses.keep(kept)


async def answer_open_calls(run: TurnRun) -> dict[TaskId, Unconfirmed]:
    """Answer every open call with the next commit. Gives the calls that go on, each under the id of its task."""
    owned: dict[TaskId, Unconfirmed] = {}
    answers: list[ModelRequestPart] = []
    await _write_all(run)
    for call in history.open_calls(run.messages):
        recorded = run.answers.book.recorded.get(call.tool_call_id)
        if recorded is not None:
            answers += recorded.parts
            continue
        unconfirmed = run.answers.record_of(call.tool_call_id).unconfirmed
        if unconfirmed is not None:
            task_id = ids.task_id()
            owned[task_id] = unconfirmed
            text = outcomes.NEVER_CONFIRMED.format(task_id=task_id)
            part = outcomes.interrupted(call.tool_name, call.tool_call_id, text)
            await run.answers.call_log.ended(part, task_id=task_id)
        else:
            part = run.answers.clean(harmless(_answer(run, call)))
            await run.answers.log_end(part)
        answers.append(part)
    if answers:
        await run.log.add_message(ModelRequest(parts=returns_first(answers)))
    return owned


async def log_known_ends(run: TurnRun) -> None:
    """For the next attempt: how those calls ended that ended while this one was leaving.

    One that was cancelled and may be run again stays open: the next attempt runs it.
    """
    await _write_all(run)
    known = _records(run).known() - run.answers.book.recorded.keys()
    for call in history.open_calls(run.messages):
        if call.tool_call_id in known:
            part = run.answers.clean(harmless(_answer(run, call)))
            await run.answers.log_end(part)
            run.answers.book.recorded[call.tool_call_id] = Recorded(part)


async def carry_over(run: TurnRun) -> None:
    """For another run of the same attempt, from a history with open calls: none of them is simply run again."""
    await log_known_ends(run)
    records, book = _records(run), run.answers.book
    begun = records.begun_here() - book.recorded.keys()
    still_open = history.open_calls(run.messages)
    book.in_flight |= {each.tool_call_id: each for each in still_open if each.tool_call_id in begun}
    book.masked = history.masked_calls(run.messages)
    book.in_flight |= {each.tool_call_id: each for each in still_open if each.tool_call_id in book.masked}
    book.decided |= book.recorded.keys()
    book.started |= {call_id for call_id, record in records.by_id.items() if record.has_begun}


async def _write_all(run: TurnRun) -> None:
    """Only then is it known which calls are open: an answer may have been on its way when the run was cancelled."""
    await run.log.flush()
    run.take_written()


def _records(run: TurnRun) -> CallRecords:
    return CallRecords() if run.hook is None else run.hook.records


def _answer(run: TurnRun, call: ToolCallPart) -> ToolReturnPart:
    call_id = call.tool_call_id
    record = run.answers.record_of(call_id)
    return record.came_to(call.tool_name, call_id, was_in_flight=run.answers.book.was_in_flight(call_id))


def _says_something(part: Any) -> bool:
    return bool(getattr(part, "content", None))
