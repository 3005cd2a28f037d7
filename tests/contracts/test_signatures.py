"""`outlast.Client` is held like the library: the same names, parameters, defaults and results."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from outlast.client import connections as client_connections
from outlast.client import files as client_files
from outlast.client import keys as client_keys
from outlast.client import schedules as client_schedules
from outlast.client import session as client_session
from outlast.client import sessions as client_sessions
from outlast.client import tasks as client_tasks
from outlast.client import turn as client_turn
from outlast.client import webhooks as client_webhooks
from outlast.handles import connections, files, keys, schedules, session, sessions, tasks, turn
from outlast.handles.webhooks import webhooks

PAIRS: Mapping[str, tuple[type, type]] = {
    "Sessions": (sessions.Sessions, client_sessions.Sessions),
    "Session": (session.Session, client_session.Session),
    "Turn": (turn.Turn, client_turn.Turn),
    "Sent": (turn.Sent, client_turn.Sent),
    "Tasks": (tasks.Tasks, client_tasks.Tasks),
    "OutputStream": (tasks.OutputStream, client_tasks.OutputStream),
    "Keys": (keys.Keys, client_keys.Keys),
    "Schedules": (schedules.Schedules, client_schedules.Schedules),
    "Webhooks": (webhooks.Webhooks, client_webhooks.Webhooks),
    "Files": (files.Files, client_files.Files),
    "Connections": (connections.Connections, client_connections.Connections),
}

ONLY_HERE = {
    "Session.history": "what the model sees, as objects of pydantic-ai, which a client does without: see `messages`",
    "Session.snapshot": "what `stream.expired` holds; a client gets it there",
    "Session.view_json": "for the HTTP API, which sends it as it is made",
    "Session.block_json": "for the HTTP API: the `href` of a block that was cut",
    "Session.turns": "for the protocols, which fold turns where the log is",
    "Session.first_turn": "for the protocols",
    "Session.turn_after": "for the protocols",
    "Turn.fold": "for the protocols",
    "Turn.lead": "for the protocols",
    "Turn.begins_after": "for the protocols",
    "Keys.find": "the server's own check of what a caller shows",
    "Keys.ended": "the server's own watch over open streams",
}
"""What a program has beside the runtime, and a client has not."""

ONLY_HERE_PARAMETERS = {
    "Sessions.create(history)": "trusted as it is; what comes over HTTP is not: see `import_`",
    "Session.schedule(by)": "over HTTP the key that is shown says who it was",
    "Keys.make(made_with)": "the server's own: a cookie that ends with the key that was shown for it",
    "Keys.revoke(owner_id)": "the server's own: an owner that ends what is theirs; whoever asks over HTTP is an admin",
}

SAME_THING = {
    **dict.fromkeys(("SessionId", "TurnId", "TaskId", "InputId", "KeyId", "ScheduleId"), "str"),
    "CompletionAnswer": "Completed",
    "PieceAnswer": "Piece",
    "InputAnswer": "Input",
    "KeyAnswer": "Key",
    "ConnectionAnswer": "Connection",
    "WebhookAnswer": "Webhook",
    "DeliveryAnswer": "Delivery",
    "JsonValue": "Any",
}
"""Names of the same thing: ids are text on the wire, and answers have the fields of what they tell about."""

STORED = {"TaskState"}
"""Accepted by the library beside the words for it."""


def members(kind: type) -> dict[str, Any]:
    found = inspect.getmembers_static(kind, lambda each: inspect.isfunction(each) or isinstance(each, property))
    return {name: each for name, each in found if not name.startswith("_")}


@pytest.mark.parametrize("name", PAIRS)
def test_the_client_has_what_the_library_has(name: str) -> None:
    """what is missing on one side is missing for a reason."""
    here, there = (set(members(each)) for each in PAIRS[name])
    excused = {each.partition(".")[2] for each in ONLY_HERE if each.startswith(f"{name}.")}
    assert here - there == excused
    assert there - here == set()


def both() -> Iterator[Any]:
    for name, (here, there) in PAIRS.items():
        ours, theirs = members(here), members(there)
        for each in sorted(ours.keys() & theirs.keys()):
            yield pytest.param(f"{name}.{each}", ours[each], theirs[each], id=f"{name}.{each}")


@pytest.mark.parametrize(("name", "here", "there"), list(both()))
def test_what_both_have_is_called_alike(name: str, here: Any, there: Any) -> None:
    """a program that moves from the library to a server, or back, changes where it begins and nothing else."""
    assert type(here) is type(there)
    if isinstance(here, property):
        assert result(here.fget) == result(there.fget)
        return
    assert inspect.iscoroutinefunction(here) == inspect.iscoroutinefunction(there)
    assert result(here) == result(there)
    ours = {each: found for each, found in parameters(here).items() if f"{name}({each})" not in ONLY_HERE_PARAMETERS}
    assert ours == parameters(there)


def test_what_is_excused_is_there() -> None:
    """A list of exceptions that outlives them would excuse the next one."""
    for each in [*ONLY_HERE, *ONLY_HERE_PARAMETERS]:
        name, _, rest = each.partition(".")
        method, _, parameter = rest.rstrip(")").partition("(")
        found = members(PAIRS[name][0])[method]
        assert not parameter or parameter in inspect.signature(found).parameters


def parameters(function: Callable[..., Any]) -> dict[str, tuple[str, str, Any]]:
    """By name, for those that are given by name: how it is given, of which type, and what stands if it is not."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return {each.name: (each.kind.name, plain(each.annotation), each.default) for each in found}


def result(function: Any) -> str:
    return plain(inspect.signature(function).return_annotation)


def plain(annotation: Any) -> str:
    """An annotation in words that both sides share; the order in a union says nothing."""
    if isinstance(annotation, str):
        return SAME_THING.get(annotation, annotation)
    of, within = get_origin(annotation), get_args(annotation)
    if of is Literal:
        return str(within)
    if of in (Union, UnionType):
        return " | ".join(sorted({plain(each) for each in within} - STORED))
    if within:
        return f"{name_of(of)}[{', '.join(plain(each) for each in within)}]"
    return name_of(annotation)


def name_of(kind: Any) -> str:
    name = getattr(kind, "__name__", str(kind))
    return SAME_THING.get(name, name)
