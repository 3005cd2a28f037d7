"""Forking: another session that begins with what was said in this one. Its tasks and its inbox stay where they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic_ai.messages import ModelMessage, ModelResponse

from outlast.agents.messages import history
from outlast.errors import InvalidInput
from outlast.handles.services.services import Services
from outlast.handles.session import Session
from outlast.ids import SessionId
from outlast.store.files.session_files import OF_THE_LOG
from outlast.store.files.spill import is_packed
from outlast.store.repositories import files, outputs, summaries
from outlast.store.repositories.files import NewFile
from outlast.store.repositories.outputs import KeptResult
from outlast.store.repositories.summaries import Summary

STILL_RUNNING = (
    "This call was still running in the conversation from which this one was forked. Its result is not known here."
)


async def copied_results(
    services: Services, source: SessionId, target: SessionId, said: Sequence[ModelMessage]
) -> list[KeptResult]:
    """The large results that these messages show in part, as files of the new session: its model reads on in them."""
    calls = {call.tool_call_id for each in said if isinstance(each, ModelResponse) for call in history.calls_of(each)}
    kept = await services.database.read(lambda connection: outputs.results_of(connection, source))
    return [
        KeptResult(each.call_id, await services.files.put(target, await services.files.get(each.file)), each.characters)
        for each in kept
        if each.call_id in calls
    ]


async def copied_files(services: Services, source: SessionId, target: SessionId) -> list[NewFile]:
    """The files that have a name, as the new session's own: its model reads them by the ids that it was told."""
    named = await services.database.read(lambda connection: files.page(connection, source))
    kept: list[NewFile] = []
    for each in named:
        data = await services.files.find(each.key)
        if data is not None:
            is_of_the_log = each.origin in OF_THE_LOG
            key = await (services.files.put if is_of_the_log else services.files.put_copy)(target, data)
            kept.append(NewFile(each.name, key, each.media_type, each.bytes, each.origin, each.made_by))
    return kept


@dataclass(frozen=True, slots=True)
class Copied:
    """The messages of a fork, and the summaries that stand for the oldest of them there."""

    messages: list[ModelMessage]
    summaries: list[Summary]


async def copied(services: Services, source: Session, at: int | None) -> Copied:
    """What the model sees up to a position, without open calls: what runs in the source does not run in the fork."""
    if at is not None and at < 0:
        raise InvalidInput(f"There is no position {at} in a history: the first is 1.")
    entries = await history.load(services.database, services.files, source.id)
    kept = [each for each in entries if at is None or each.position <= at]
    said = [each.message for each in kept]
    look = partial(summaries.of_session, session_id=source.id, up_to=kept[-1].position if kept else 0)
    found: list[Summary] = []
    for each in await services.database.read(look):
        before = [entry.message for entry in kept if entry.position <= each.up_to]
        if not is_packed(each.body):
            found.append(replace(each, up_to=len(history.closed(before, STILL_RUNNING))))
    return Copied(history.closed(said, STILL_RUNNING), found)
