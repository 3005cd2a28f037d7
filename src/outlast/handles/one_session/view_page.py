"""A page of a session's view, made of rows that were read at one moment. Nothing here waits for anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from outlast.errors import NotFound
from outlast.events.views import blocks, turn_fold
from outlast.events.views.turn_fold import TurnFold
from outlast.handles.one_session import view_size
from outlast.handles.one_session.seen import SeenSession
from outlast.handles.services.services import Services
from outlast.store.repositories import events
from outlast.store.repositories.inputs import Input, InputKind, placed
from outlast.store.repositories.sessions import SessionRow
from outlast.store.repositories.tasks import Task
from outlast.store.repositories.turns import TurnRow
from outlast.store.sql.statement import Row
from outlast.wire.session import SessionAnswer

TYPES = frozenset(each.value for each in turn_fold.TYPES)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn, and before it those in whose place it stands, with the rows of their events."""

    chain: Sequence[TurnRow]
    logs: Sequence[Sequence[Row]]


@dataclass(slots=True)
class Moment:
    """What was read in one transaction."""

    row: SessionRow
    feed: str
    turns: Sequence[ReadTurn] = ()
    has_more: bool = False
    inbox: Sequence[Input] = ()
    tasks: Sequence[Task] = ()
    tasks_left_out: int = 0
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    """Words about calls, and messages of which older events tell only the beginning."""


def as_json(services: Services, moment: Moment) -> bytes:
    shown = services.shown
    page: Object = {
        "as_of": moment.row.last_event,
        "feed": moment.feed,
        "session": SessionAnswer.of(SeenSession(services, moment.row)),
        "turns": [_turn(services, moment, each) for each in moment.turns],
        "next": None,
        "inbox": [_waiting(shown.input(each)) for each in placed(moment.inbox)],
        "tasks": [shown.stored_task(each).snapshot for each in moment.tasks],
        "tasks_left_out": moment.tasks_left_out,
    }
    return to_json(view_size.fitted(page, session_id=moment.row.id, has_more=moment.has_more))


def block_as_json(services: Services, moment: Moment, at: int) -> bytes:
    turn = _turn(services, moment, moment.turns[0])
    found = [*turn["kept"], *turn["blocks"]]
    if not 0 <= at < len(found):
        raise NotFound("There is no such block.", number=at)
    return to_json(found[at])


def _turn(services: Services, moment: Moment, read: ReadTurn) -> Object:
    kept: list[blocks.Block] = []
    turn: Object = {}
    for row, log in zip(read.chain, read.logs, strict=True):
        turn = _fold(services, row, log)
        turn["kept"] = kept
        for block in turn["blocks"]:
            _complete(services, moment, block)
        kept = turn_fold.kept_of(turn)
    return turn


def _fold(services: Services, row: TurnRow, log: Sequence[Row]) -> Object:
    known = turn_fold.new_turn(row.id) | {"origin": row.origin.value, "queued_at": row.created_at}
    fold = TurnFold(row.id, show=blocks.previewed, known=known)
    for each in log:
        fold.add(services.shown.event(events.from_row(each)))
    if row.is_over and not fold.is_over:  # its end is no longer kept
        fold.end(row.state.value, services.shown.error(row.error), services.shown.spent(row.usage))
    return fold.turn


def _complete(services: Services, moment: Moment, block: blocks.Block) -> None:
    """With what its event does not have, or what came after its turn."""
    if block["type"] == "call" and block["outcome"] == "interrupted":
        key = f"settle:{block['call_id']}"
        said = next((each for each in moment.inputs.values() if each.idempotency_key == key), None)
        if said is not None:
            shown = services.shown.value
            told = {name: shown(said.body.get(name)) for name in ("by", "note")}
            block["settled"] = {"verdict": said.body.get("verdict"), **told, "at": said.created_at}
    elif (given := moment.inputs.get(block.get("input_id") or "")) is not None:
        given = services.shown.input(given)
        block["text"] = given.text
        if block["type"] == "message":
            block |= {"mode": given.mode.value, "by": given.by, "files": _files(given)}


def _waiting(given: Input) -> Object:
    return {
        "input_id": given.id,
        "kind": given.kind.value,
        "mode": given.mode.value,
        "text": given.text,
        "cut": None,
        "key": given.idempotency_key if given.kind is InputKind.MESSAGE else None,
        "task_ids": given.task_ids,
        "files": _files(given),
        "by": given.by if given.kind is InputKind.MESSAGE else None,
        "place": given.place,
        "created_at": given.created_at,
    }


def _files(given: Input) -> list[Object]:
    return [
        {name: each[name] for name in ("id", "name", "media_type", "bytes")} for each in given.body.get("files") or ()
    ]
