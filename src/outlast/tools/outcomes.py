"""What a call came to, in a form that the model, the log and the next process all see alike."""

from dataclasses import replace
from typing import Any, cast

import structlog
from pydantic_ai import ToolReturn
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import BinaryContent, FileUrl, ToolReturnPart
from pydantic_core import PydanticSerializationError, to_jsonable_python

from outlast.ids import reference_id
from outlast.tools.escape import escape
from outlast.tools.redact import error_chain, last_line
from outlast.tools.secrets import Secrets

log = structlog.get_logger("outlast.calls")

FAILURES = (ToolRetryError, ToolFailedError, ToolFailed, ModelRetry)
"""What tells the model that a call failed, and why."""

PASSED_ON = (*FAILURES, CallDeferred, ApprovalRequired, SkipToolExecution)
"""What pydantic-ai itself turns into an answer for the model."""

DEPTH = 190
"""Levels of lists and objects in a value: what reads it back takes 200, with all that stands around it."""

MAY_HAVE_RUN = (
    "This call was running when its process ended. It may or may not have taken effect, and it was not run "
    "again. Check before you repeat it."
)
NOT_RUN = "The turn ended before this call began. It was not run."
NEEDS_APPROVAL = "This call needs an approval, and none can be given here yet. It was not run."
NEEDS_RESULT = "This call waits for a result from outside, and none can be given here yet. It was not run."
HANDED_OUT = (
    "This call began and left its work to something outside; its result cannot be given here yet. It may take effect."
)
CANCELED = "This call was cancelled before it finished. Some of its effects may have happened."
NEVER_CONFIRMED = (
    "The turn ended while this call ran. It was asked to cancel and has not confirmed: it may still "
    "take effect. Its end is recorded in task {task_id}."
)


def normalise(value: Any, room: int = DEPTH) -> Any:
    """A tool's value as JSON (files and images stay what they are), so that live and stored history agree."""
    if room < 0:
        raise ValueError(f"The value is nested in more than {DEPTH} levels.")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, ToolReturn):
        returned = cast(ToolReturn[Any], value)
        return replace(
            returned, return_value=normalise(returned.return_value, room), content=_clean_content(returned.content)
        )
    if isinstance(value, BinaryContent | FileUrl):
        return value
    if isinstance(value, list | tuple):
        return [normalise(each, room - 1) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_key(name): normalise(each, room - 1) for name, each in cast(dict[Any, Any], value).items()}
    plain = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null")
    return normalise(plain, room) if isinstance(plain, str | list | dict) else plain


def _key(name: Any) -> str:
    return _clean(name if isinstance(name, str) else next(iter(to_jsonable_python({name: None}))))


def _clean(text: str) -> str:
    """Without lone surrogates and NUL, which no store and no wire takes, and without the runtime's own tags."""
    return escape(text.encode(errors="replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}"))


def _clean_content(content: Any) -> Any:
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, list | tuple):
        return [_clean(each) if isinstance(each, str) else each for each in cast(list[Any], content)]
    return content


def settle(tool: str, value: Any, secrets: Secrets) -> Any:
    """Normalise a value, or fail the call with a reference: a value that cannot be stored ends no run."""
    try:
        return _masked(normalise(value), secrets)
    except (PydanticSerializationError, ValueError, RecursionError) as exc:
        raise internal_error(tool, exc, secrets) from exc


def _masked(value: Any, secrets: Secrets) -> Any:
    """Without registered values: neither the model nor a store sees them."""
    if not isinstance(value, ToolReturn):
        return secrets.mask(value)
    returned = cast(ToolReturn[Any], value)
    return replace(returned, return_value=secrets.mask(returned.return_value), content=secrets.mask(returned.content))


def translate(tool: str, exc: BaseException, secrets: Secrets) -> BaseException:
    """An exception as what the model may see: its own kinds as they are, anything else as one generic sentence."""
    if isinstance(exc, PASSED_ON):
        return exc
    if isinstance(exc, UnexpectedModelBehavior) and isinstance(exc.__cause__, ModelRetry):
        # pydantic-ai would end the run here: the tool asked for another try once too often.
        failed = ToolFailed(exc.__cause__.message)
        failed.__cause__ = exc
        return failed
    return internal_error(tool, exc, secrets)


def internal_error(tool: str, exc: BaseException, secrets: Secrets) -> ToolFailed:
    """Log the whole chain under a reference, and give the model only the reference."""
    reference = reference_id()
    why = secrets.mask(last_line(exc))
    log.error("tool failed", tool=tool, reference=reference, error=why, chain=secrets.mask(error_chain(exc)))
    error = ToolFailed(f"The tool {tool!r} failed with an internal error (reference {reference}).")
    error.__cause__ = exc
    return error


def interrupted(tool: str, call_id: str, text: str) -> ToolReturnPart:
    return ToolReturnPart(tool_name=tool, content=text, tool_call_id=call_id, outcome="interrupted")
