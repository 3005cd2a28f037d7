"""The Python reference: public names as the source has them, with the first paragraph of their docstrings."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any, is_typeddict

from pydantic_ai.models import Model

import outlast
from outlast import errors, testing
from outlast.agents.messages.history import StoredMessage
from outlast.client import keys as client_keys
from outlast.client import session as client_session
from outlast.client import sessions as client_sessions
from outlast.client import streams as client_streams
from outlast.client import tasks as client_tasks
from outlast.client import turn as client_turn
from outlast.events.outcome import CallOutcome, Usage
from outlast.events.stream import EventStream
from outlast.handles.feed import OwnerStream
from outlast.handles.keys import Keys
from outlast.handles.services.known_agents import KnownAgent
from outlast.handles.sessions import Sessions
from outlast.handles.usage import UsageReport
from outlast.paging import Page
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.keys import Key
from outlast.store.repositories.spending import Spent
from outlast.wire.forms import Answer
from outlast.wire.message import SendOptions
from outlast.wire.task import RequestAnswer, Settled
from outlast.wire.task_state import TaskState
from outlast.wire.turn import UsageAnswer

MET_ON_THE_WAY = (
    Sessions,
    SendOptions,
    EventStream,
    CallOutcome,
    Usage,
    Input,
    TaskState,
    Settled,
    RequestAnswer,
    UsageAnswer,
    Page,
    StoredMessage,
    OwnerStream,
    Keys,
    Key,
    UsageReport,
    KnownAgent,
    Spent,
)
"""Not imported by name: they are what public things return or take."""

OF_A_CLIENT = (
    client_sessions.Sessions,
    client_session.Session,
    client_turn.Sent,
    client_turn.Turn,
    client_tasks.Tasks,
    client_keys.Keys,
    client_streams.EventStream,
    client_streams.FeedStream,
    client_streams.OutputStream,
)
"""What a client returns: handles like the library's, over HTTP."""

HANDLES = ("outlast.handles.", "outlast.client.")

MADE_BY_USERS = (outlast.Outlast, outlast.Client, testing.ScriptedModel)
"""The constructors that users call; the other classes are handles that methods return, or plain records."""


def python_page() -> str:
    sections = [
        "# Python",
        "## `outlast`",
        *_entries(outlast),
        "## What these give you",
        "You do not import these: methods above return or take them.",
        *(_class(each.__name__, each) for each in MET_ON_THE_WAY),
        "## What a client gives you",
        "`Client` has the library's nouns over HTTP; what else it returns is what the server answers, with types.",
        *(_class(each.__name__, each) for each in OF_A_CLIENT),
        "## `outlast.testing`",
        *_entries(testing),
        "## `outlast.errors`",
        "All derive from `OutlastError` and have `message`, `details` and a stable `code`.",
        "\n".join(["| error | `code` | when |", "|---|---|---|", *_error_rows()]),
    ]
    return "\n\n".join(sections) + "\n"


def _entries(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        value: Any = getattr(module, name)
        if inspect.isclass(value):
            yield _class(name, value)
        elif inspect.isfunction(value):
            yield f"### `{name}`\n\n{_paragraph(value.__doc__)}\n\n{_code([_signature(_function(value))])}"
        else:
            yield f"### `{name}`\n\nA name for a type, for annotations."


def _error_rows() -> Iterator[str]:
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, errors.OutlastError):
            yield f"| `{name}` | `{value.code}` | {_paragraph(value.__doc__)} |"


def _class(name: str, value: type[Any]) -> str:
    is_made, is_model = value in MADE_BY_USERS, issubclass(value, Model)
    node, functions = _node(value), _functions(value)
    made = [f"{name}({_arguments(each.args)})" for each in functions if is_made and each.name == "__init__"]
    shown = [] if is_model else [_method(each) for each in functions if not each.name.startswith("_")]
    parts = [
        f"### `{name}`",
        _paragraph(ast.get_docstring(node)),
        _code([*made, *_fields(value, node)]),
        "\n".join(shown),
    ]
    return "\n\n".join(part for part in parts if part)


def _node(value: type[Any]) -> ast.ClassDef:
    [node] = ast.parse(inspect.getsource(value)).body
    assert isinstance(node, ast.ClassDef)
    return node


def _functions(value: type[Any]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Its own, and those of handles that it is built on, which have no section."""
    kinds = [each for each in value.__mro__ if each is value or each.__module__.startswith(HANDLES)]
    found = [each for kind in reversed(kinds) for each in _node(kind).body]
    functions = [each for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return list({each.name: each for each in functions}.values())


def _fields(value: type[Any], node: ast.ClassDef) -> Iterator[str]:
    """What a dataclass, an enum or a set of options holds; the fields of settings have a page of their own."""
    if is_dataclass(value) or is_typeddict(value):
        yield from (ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign))
    elif issubclass(value, Answer):
        held = (each for each in node.body if isinstance(each, ast.AnnAssign))
        yield from (_field(value.model_fields[ast.unparse(each.target)].description, each) for each in held)
    elif issubclass(value, Enum):
        yield from (ast.unparse(each) for each in node.body if isinstance(each, ast.Assign))


def _field(said: str | None, node: ast.AnnAssign) -> str:
    shown = f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
    return shown if said is None else f"{shown}  # {said}"


def _method(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list):
        returns = f": {ast.unparse(function.returns)}" if function.returns is not None else ""
        shown = f"{function.name}{returns}"
    else:
        shown = _signature(function)
    said = _paragraph(ast.get_docstring(function))
    return f"- `{shown}`" + (f": {said}" if said else "")


def _function(value: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    [node] = ast.parse(inspect.getsource(value)).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    awaited = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    return f"{awaited}{function.name}({_arguments(function.args)}){returns}"


def _arguments(given: ast.arguments) -> str:
    shown = ast.unparse(given)
    return shown.removeprefix("self").removeprefix(", ")


def _code(lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"```text\n{body}\n```" if body else ""


def _paragraph(docstring: str | None) -> str:
    return " ".join(inspect.cleandoc(docstring or "").partition("\n\n")[0].split())
