"""What a tool says about itself. The defaults are the careful ones: it changes things, and not twice the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final, Literal, cast

from outlast.errors import InvalidInput

KEY = "outlast"
_KINDS: tuple[Literal["tool"], Literal["connection"]] = ("tool", "connection")


class Unset(Enum):
    UNSET = "unset"


UNSET: Final = Unset.UNSET
Seconds = timedelta | float
Wake = Literal["on_terminal", "silent"]
Phase = Literal["running", "done", "failed"]
PHASES: tuple[Phase, ...] = ("running", "done", "failed")
Words = str | Callable[[Any], Any]
Narrate = Words | Mapping[Phase, Words]
"""A template with `{argument}` in it, a function of the arguments, or one of these for each phase of a call."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What must be there before a tool runs: a call of another `tool` in the session, or a `connection`."""

    kind: Literal["tool", "connection"]
    name: str


Requires = str | Mapping[str, str] | Sequence[str | Mapping[str, str]]
"""`"read_guide"` or `{"tool": "read_guide"}`, `{"connection": "github"}`, or several of them."""


@dataclass(frozen=True, slots=True)
class Hints:
    """`read_only` or `idempotent` work may run again after a crash; anything else is never run twice.

    `budget` UNSET means the default; None means that the turn waits however long it takes. `approve`: a person decides
    whether a call is run, always or if this says so of its arguments.
    """

    read_only: bool = False
    idempotent: bool = False
    budget: timedelta | Unset | None = UNSET
    deadline: timedelta | None = None
    progress_deadline: timedelta | None = None
    group: str | None = None
    requires: tuple[Requirement, ...] = ()
    approve: "bool | Callable[[Any], Any]" = False
    concurrency: int | None = None
    max_attempts: int | None = None
    wake: Wake | None = None
    narrate: Mapping[Phase, Words] | Literal[True] | None = None
    """True: words of which only whoever has the tool itself knows."""
    destructive: bool = False

    @property
    def may_run_again(self) -> bool:
        return (self.read_only or self.idempotent) and self.max_attempts != 1


_CAREFUL = Hints()


def hints(
    *,
    read_only: bool = False,
    idempotent: bool = False,
    budget: Seconds | Unset | None = UNSET,
    deadline: Seconds | None = None,
    progress_deadline: Seconds | None = None,
    group: str | None = None,
    requires: Requires = (),
    approve: bool | Callable[[Any], Any] = False,
    concurrency: int | None = None,
    max_attempts: int | None = None,
    wake: Wake | None = None,
    narrate: Narrate | None = None,
    destructive: bool = False,
) -> dict[str, Any]:
    """Metadata for a pydantic-ai tool: `@agent.tool_plain(metadata=outlast.hints(budget=5, idempotent=True))`.

    `budget`: how long a turn waits for a call before it is parked; None: it waits. `deadline`: when the call is
    told to stop, parked or not. `progress_deadline`: how long a parked call may go without progress. `group`:
    tasks of one group wake the session once, when all of them have ended. `concurrency`: how many calls of the tool
    one worker process runs at once; others wait, which counts to their budget and deadline. `max_attempts`: how often
    a task of it is tried whose workers die under it; 1: never again, not by a turn either. `wake`: whether the end of
    a task of it wakes the session (`on_terminal`, as without this) or not (`silent`). `requires`: a
    tool that must have been called in the session before, or a connection that must be there: `"read_guide"`,
    `{"connection": "github"}`. `approve`: a person is asked before a call is run, always, or if the function (async,
    too) says so of its arguments. `narrate`: what a call does, in at most 200 characters for people: a template such as
    `"Searching flights to {city}"`, a function of the arguments, or a mapping with one of these for `running`, `done`
    and `failed`. One that fails is replaced by the tool's name.
    `destructive`: what it does cannot be undone, which whoever is asked is told.
    """
    for name, number in (("concurrency", concurrency), ("max_attempts", max_attempts)):
        if number is not None and number < 1:
            raise InvalidInput(f"{name}={number} is not a number of calls: use 1 or more.")
    if wake not in (None, "on_terminal", "silent"):
        raise InvalidInput(f"wake={wake!r} is not known: use on_terminal or silent.")
    given = Hints(
        read_only=read_only,
        idempotent=idempotent,
        budget=budget if isinstance(budget, Unset) else _duration(budget),
        deadline=_duration(deadline),
        progress_deadline=_duration(progress_deadline),
        group=group,
        requires=_requirements(requires),
        approve=approve,
        destructive=destructive,
        concurrency=concurrency,
        max_attempts=max_attempts,
        wake=wake,
        narrate=_phases(narrate),
    )
    return {KEY: given}


def hints_of(metadata: Mapping[str, Any] | None) -> Hints:
    """A tool's own hints, else what an MCP server annotated, else the careful defaults."""
    if not metadata:
        return _CAREFUL
    given: Any = metadata.get(KEY)
    if isinstance(given, Hints):
        return given
    annotations: Any = metadata.get("annotations")
    if isinstance(annotations, dict):
        said = cast(dict[str, Any], annotations)
        read_only = said.get("readOnlyHint") is True
        is_destructive = said.get("destructiveHint") is True and not read_only
        return Hints(read_only=read_only, idempotent=said.get("idempotentHint") is True, destructive=is_destructive)
    return _CAREFUL


def _phases(given: Narrate | None) -> Mapping[Phase, Words] | None:
    if given is None:
        return None
    if isinstance(given, str) or callable(given):
        return {"running": given}
    unknown = [each for each in given if each not in PHASES]
    if unknown or not given or not all(isinstance(each, str) or callable(each) for each in given.values()):
        raise InvalidInput(f"narrate={given!r} is not understood: give words for running, done and failed.")
    return dict(given)


def _requirements(given: Requires) -> tuple[Requirement, ...]:
    listed = [given] if isinstance(given, str | Mapping) else given
    return tuple(each for one in listed for each in _required_by(one))


def _required_by(given: str | Mapping[str, str]) -> list[Requirement]:
    named = {"tool": given} if isinstance(given, str) else given
    found = [Requirement(kind, named[kind]) for kind in _KINDS if kind in named]
    if not found or len(found) != len(named) or not all(each.name for each in found):
        raise ValueError(f'requires={given!r} is not understood: name a tool, or write {{"connection": "github"}}.')
    return found


def _duration(value: Seconds | None) -> timedelta | None:
    if value is None or isinstance(value, timedelta):
        return value
    return timedelta(seconds=value)
