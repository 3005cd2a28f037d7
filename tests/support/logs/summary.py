"""Everything that can be read of a session, told in so few words that it can be kept and compared later."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from outlast import Event, Outcome, Outlast, Session, Task

_FEW = 2
"""So small a page that each session with a history has several."""
_SHORT = 160


class Fed(NamedTuple):
    """An event of an owner's feed, and the cursor to read on after it."""

    cursor: str
    event: Event


class Report(BaseModel):
    """The typed output of the agents whose sessions are summed up."""

    city: str
    degrees: int


async def summary_of(outlast: Outlast[Any, Any], session: Session) -> dict[str, Any]:
    turns = await all_turns(session)
    places = {each["id"]: at for at, each in enumerate(turns)}
    tasks = [await _task(outlast, session.owner_id, each) for each in await all_tasks(outlast, session)]
    places |= {each["id"]: at for at, each in enumerate(tasks)}
    events = await all_events(session)
    return {
        "id": session.id,
        "owner": session.owner_id,
        "is_open": session.turn_id is not None or any(each["state"] in ("queued", "running") for each in tasks),
        "about": _about(session),
        "turns": turns,
        "tasks": tasks,
        "events": [_event(each, places) for each in events],
        "said": _said(events),
        "messages": await all_messages(session),
        "history": [part.part_kind for message in await session.history() for part in message.parts],
        "inbox": [[each.kind, each.mode, each.text] for each in await session.inbox(is_whole=True)],
        "export": _export(await session.export(), places),
    }


async def all_sessions(outlast: Outlast[Any, Any], owner_id: str) -> list[Session]:
    """By pages, in the order in which they were made."""
    found: list[Session] = []
    before: str | None = None
    while True:
        page = await outlast.owned_by(owner_id).page(archived=None, limit=7, before=before)
        found += page.items
        before = page.next
        if before is None:
            return sorted(found, key=lambda each: each.created_at)


async def all_events(session: Session, *, after: int = 0) -> list[Event]:
    async with session.events(after=after, follow=False) as stream:
        return [event async for event in stream]


async def all_turns(session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before: str | None = None
    while True:
        page = await session.turns(before=before, limit=_FEW)
        found[:0] = [_turn(await each.outcome(wait=0)) for each in page.items]
        before = page.next
        if before is None:
            return found


async def all_messages(session: Session) -> list[list[Any]]:
    found: list[list[Any]] = []
    after: int | str = 0
    while True:
        page = await session.messages(after=after, limit=_FEW)
        found += [[each.position, each.message["kind"], each.superseded_by is not None] for each in page.items]
        if page.next is None:
            return found
        after = page.next


async def all_tasks(outlast: Outlast[Any, Any], session: Session) -> list[Task]:
    """Oldest first."""
    found: list[Task] = []
    before: str | None = None
    while True:
        page = await outlast.tasks_of(session.owner_id).page(session_id=session.id, before=before, limit=_FEW)
        found[:0] = list(page.items)[::-1]
        before = page.next
        if before is None:
            return found


async def feed_of(outlast: Outlast[Any, Any], owner_id: str, *, after: str | None = None) -> list[Fed]:
    async with outlast.events_of(owner_id, after=after, follow=False) as stream:
        return [Fed(cursor, event) async for cursor, event in stream]


def feed_lines(feed: Sequence[Fed], sessions: Sequence[Session], gone: Sequence[str]) -> list[list[Any]]:
    """Sessions by their place in the list. Of one that is gone only that it is: more depends on when somebody looks."""
    places = {each.id: at for at, each in enumerate(sessions)}
    return [
        [places.get(event.session_id, event.session_id), event.number, event.type]
        for _, event in feed
        if event.session_id not in gone or event.type == "session.deleted"
    ]


def _about(session: Session) -> dict[str, Any]:
    return {
        "title": session.title,
        "preview": session.preview,
        "metadata": dict(session.metadata),
        "model": session.model,
        "agent": session.agent,
        "external_id": session.external_id,
        "state": session.state,
        "is_archived": session.is_archived,
        "is_unread": session.is_unread,
        "last_event": session.last_event,
        "interrupted_calls": [each.call_id for each in session.interrupted_calls],
    }


def _turn(outcome: Outcome) -> dict[str, Any]:
    usage = outcome.usage
    return {
        "id": outcome.turn_id,
        "state": outcome.state,
        "text": short(outcome.text),
        "output": short(_plain(outcome.output)),
        "output_type": type(outcome.output).__name__,
        "error": None if outcome.error is None else outcome.error["kind"],
        "attempt": outcome.attempt,
        "usage": [usage.requests, usage.input_tokens, usage.output_tokens, usage.cost_microdollars],
        "calls": [[each.call_id, each.tool, each.outcome] for each in outcome.calls],
    }


async def _task(outlast: Outlast[Any, Any], owner_id: str, task: Task) -> dict[str, Any]:
    output, piece = "", await outlast.tasks_of(owner_id).output(task.id, length=1_000)
    while piece.text:
        output += piece.text
        piece = await outlast.tasks_of(owner_id).output(task.id, offset=piece.next_offset, length=1_000)
    return {
        "id": task.id,
        "state": task.state,
        "shown_state": task.shown_state,
        "tool": task.tool,
        "call_id": task.call_id,
        "group": task.group,
        "result": short(task.result),
        "error": None if task.error is None else task.error["kind"],
        "late": None if task.late_outcome is None else task.late_outcome["state"],
        "settled": None if task.settled is None else task.settled.verdict,
        "links": dict(task.links),
        "artifacts": [each["name"] for each in task.artifacts],
        "attempt": task.attempt,
        "output": short(output),
    }


def _event(event: Event, places: dict[Any, int]) -> list[Any]:
    """Turns and tasks by their place in the lists beside it: their ids would be most of the file."""
    return [
        event.number,
        event.type,
        places.get(event.turn_id, event.turn_id),
        places.get(event.task_id, event.task_id),
    ]


def _said(events: Sequence[Event]) -> dict[str, Any]:
    """The words of each part of an answer, put together from its deltas."""
    found: dict[str, str] = {}
    for event in events:
        if event.type == "part.delta":
            found[event.data["part"]] = found.get(event.data["part"], "") + event.data["text"]
    return {part: short(text) for part, text in found.items()}


def _export(document: dict[str, Any], places: dict[Any, int]) -> dict[str, Any]:
    return {
        "format": document["format"],
        "session": [document["session"][name] for name in ("id", "title", "agent", "model", "external_id")],
        "messages": len(document["messages"]),
        "turns": [[places.get(each["id"]), each["origin"], each["state"]] for each in document["turns"]],
        "tasks": [[places.get(each["id"]), each["state"]] for each in document["tasks"]],
        "left_out": document["left_out"],
    }


def _plain(output: Any) -> Any:
    return output.model_dump() if isinstance(output, BaseModel) else output


def short(value: Any) -> Any:
    """As it is, or its size and both ends."""
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= _SHORT else {"characters": len(text), "from": text[:20], "to": text[-20:]}
