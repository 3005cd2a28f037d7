"""A gate: what a call passes before it runs. It lets the call run, answers in its place, or makes it wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol, cast

from pydantic_ai import ToolDefinition

from outlast.ids import SessionId, TurnId
from outlast.tool_hints import Hints
from outlast.values import clean


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call that is about to run, with all that a gate may decide by.

    `raw_args` are the model's own words, `args` what validation made of them. `definition` is the tool as its agent
    gave it. A call of a tool that asks for an approval, or whose result comes from outside, passes like any other.
    """

    session_id: SessionId
    owner_id: str
    turn_id: TurnId | None
    agent: str
    call_id: str
    definition: ToolDefinition
    hints: Hints
    raw_args: Any
    args: Any
    is_approved: bool = False
    """A person, or a capability of the agent, has approved this very call."""
    needs_approval: bool = False
    """Its tool runs only with an approval: it said so before (`requires_approval`), or as it began."""
    is_external: bool = False
    """Its result comes from outside: its tool has no code here, or has handed the work out."""
    has_begun: bool = False
    """Its tool's code ran and asked for something: it may have had an effect already."""
    metadata: Any = None
    """What the tool said of what it asks for."""

    @property
    def tool(self) -> str:
        return self.definition.name

    @property
    def plain_args(self) -> Any:
        """What the tool would get, as JSON under the names that the model is shown.

        A function with one model as its argument is shown as having the model's fields.
        """
        plain: Any = clean.value(self.args)
        shown: Any = self.definition.parameters_json_schema.get("properties", {})
        fields = cast(dict[str, Any], plain) if isinstance(plain, dict) else {}
        if len(fields) != 1:
            return plain  # pyright: ignore[reportUnknownVariableType]
        ((name, value),) = fields.items()
        inner = cast(dict[str, Any], value) if isinstance(value, dict) else None
        is_model = inner is not None and name not in shown and inner.keys() <= shown.keys()
        return inner if is_model else fields


@dataclass(frozen=True, slots=True)
class Run:
    """The call may run as far as this gate is concerned; with `args` in place of its own, if any are given.

    `is_approved`: a person has said so of such calls, and its tool need not ask.
    """

    args: Any = None
    is_approved: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The call is not run; the model gets this at once, and none of its retries is used up.

    `failure` is told as the tool's failure; without one `value` is the result.
    """

    value: Any = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The call waits for somebody, as a task in `awaiting_input`; the model gets a handle at once as its result.

    Whoever runs the call makes that task in one transaction, or moves the one that the call already is.
    """

    kind: Literal["approval", "question", "connection"]
    prompt: str
    """For the person who is asked."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the request says: a schema of the answer, an address."""
    deadline: timedelta | None = None
    """How long it waits at most."""


Verdict = Run | Answer | Wait
RUN = Run()
"""Nothing to say."""


class Gate(Protocol):
    """Asked once before a call begins, and again if its tool asks for an approval or hands its work out.

    It costs a fast call nothing when it has nothing to say: whatever must be read is read once, or only when a call
    is concerned.
    """

    async def admit(self, call: CallRequest) -> Verdict: ...


class EndListener(Protocol):
    """A gate that also learns how the calls end that it let run."""

    def ended(self, call: CallRequest, error: BaseException | None) -> str | None:
        """May give a word for the model, to be told with the call's failure."""
        ...
