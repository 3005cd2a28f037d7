"""What a call came to, in a form that the model, the log and the next process all see alike."""

from dataclasses import replace
from typing import Any, TypeVar, cast

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
from pydantic_ai.messages import BinaryContent, CachePoint, FileUrl, TextContent, ToolReturnPart, UploadedFile

from outlast.ids import reference_id
from outlast.values import clean, row_json
from outlast.values.escape import escape
from outlast.values.redact import error_chain, last_line
from outlast.values.secrets import Secrets

log = structlog.get_logger("outlast.calls")
ExceptionT = TypeVar("ExceptionT", bound=Exception)

FAILURES = (ToolRetryError, ToolFailedError, ToolFailed, ModelRetry)
"""What tells the model that a call failed, and why."""

PASSED_ON = (*FAILURES, CallDeferred, ApprovalRequired, SkipToolExecution)
"""What pydantic-ai itself turns into an answer for the model."""

_FILES = (BinaryContent, FileUrl)
_CONTENT = (*_FILES, TextContent, UploadedFile, CachePoint)

MAY_HAVE_RUN = (
    "This call was running when its process ended. It may or may not have taken effect, and it was not run "
    "again. Check before you repeat it."
)
NOT_RUN = "The turn ended before this call began. It was not run."
NEEDS_APPROVAL = "This call needs an approval, and none can be given here yet. It was not run."
ASKS_AGAIN = "The tool was run with the approval of a person, and asks for one all the same. It may have had an effect."
NEEDS_RESULT = "This call waits for a result from outside, and none can be given here yet. It was not run."
HANDED_OUT = (
    "This call began and left its work to something outside; its result cannot be given here yet. It may take effect."
)
CANCELED = "This call was cancelled before it finished. Some of its effects may have happened."
CANCELED_REPEATABLE = "This call was cancelled before it finished. It may be run again without harm."
CANNOT_WAIT = (
    "Not run: it would have to wait for somebody, and nothing more can wait here now. Too many tasks of this "
    "conversation are open, or its turn is ending."
)
CANNOT_ASK = "too many tasks of this conversation are open, or its turn is ending."
NEVER_RAN = frozenset({NOT_RUN, NEEDS_APPROVAL, NEEDS_RESULT})
"""What is said of calls that cannot have taken effect: nobody need settle them."""
NEVER_CONFIRMED = (
    "The turn ended while this call ran. It was asked to cancel and has not confirmed: it may still "
    "take effect. Its end is recorded in task {task_id}."
)


def normalise(value: Any) -> Any:
    """A tool's value as JSON (files and images stay what they are), so that live and stored history agree."""
    if not isinstance(value, ToolReturn):
        return clean.value(value, words=_clean, kept=_FILES)
    returned = cast(ToolReturn[Any], value)
    return replace(
        returned,
        return_value=clean.value(returned.return_value, words=_clean, kept=_FILES),
        content=_clean_content(returned.content),
        metadata=clean.value(returned.metadata),
    )


def _clean(text: str) -> str:
    """Without what no store takes, and without the runtime's own tags."""
    return escape(clean.text(text))


def _clean_content(content: Any) -> Any:
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, list | tuple):
        return [_content_item(each) for each in cast(list[Any], content)]
    return content if content is None else _clean(clean.words_of(content))


def _content_item(item: Any) -> Any:
    """As pydantic-ai takes it: a file, or text; of anything else its JSON."""
    plain = clean.value(item, words=_clean, kept=_CONTENT)
    return plain if isinstance(plain, (str, *_CONTENT)) else row_json.write(plain)


def plain_value(value: Any, secrets: Secrets) -> Any:
    """What a call came to, as it is kept and told: plain, and without registered values."""
    return _masked(normalise(value), secrets)


def _masked(value: Any, secrets: Secrets) -> Any:
    """Without registered values: neither the model nor a store sees them."""
    if not isinstance(value, ToolReturn):
        return secrets.mask(value)
    returned = cast(ToolReturn[Any], value)
    return replace(returned, return_value=secrets.mask(returned.return_value), content=secrets.mask(returned.content))


def translate(tool: str, exc: BaseException, secrets: Secrets) -> BaseException:
    """An exception as what the model may see: its own kinds as they are, anything else as one generic sentence."""
    if isinstance(exc, PASSED_ON):
        return plain_failure(exc)
    if isinstance(exc, UnexpectedModelBehavior) and isinstance(exc.__cause__, ModelRetry):
        # pydantic-ai would end the run here: the tool asked for another try once too often.
        failed = ToolFailed(exc.__cause__.message)
        failed.__cause__ = exc
        return failed
    return internal_error(tool, exc, secrets)


def plain_failure(exc: Exception) -> Exception:
    """What a tool says of its failure is told as text, whatever it gave."""
    if isinstance(exc, ToolFailed | ModelRetry):
        said = _said(exc.message)
        told = ToolFailed if isinstance(exc, ToolFailed) else ModelRetry
        return exc if said is exc.message else _caused(told(said), exc)
    if isinstance(exc, ToolFailedError):
        part = _plain_part(exc.tool_failed)
        return exc if part is exc.tool_failed else _caused(ToolFailedError(part), exc)
    if isinstance(exc, ToolRetryError) and isinstance(exc.tool_retry, ToolReturnPart):
        part = _plain_part(exc.tool_retry)
        return exc if part is exc.tool_retry else _caused(ToolRetryError(part), exc)
    return exc


def _plain_part(part: ToolReturnPart) -> ToolReturnPart:
    if isinstance(part.content, list):  # what pydantic says of arguments that do not fit
        return part
    said = _said(part.content)
    return part if said is part.content else replace(part, content=said)


def _said(message: Any) -> str:
    plain = clean.value(message)
    return plain if isinstance(plain, str) else row_json.write(plain)


def _caused(told: ExceptionT, exc: Exception) -> ExceptionT:
    told.__cause__ = exc
    return told


def internal_error(tool: str, exc: BaseException, secrets: Secrets) -> ToolFailed:
    """Log the whole chain under a reference, and give the model only the reference."""
    reference = reference_id()
    why = secrets.mask(last_line(exc))
    log.error("tool failed", tool=tool, reference=reference, error=why, chain=secrets.mask(error_chain(exc)))
    error = ToolFailed(f"The tool {tool!r} failed with an internal error (reference {reference}).")
    error.__cause__ = exc
    return error


def output_failed(tool: str, exc: BaseException) -> str:
    """What an output function or a validator failed with. The reference of the turn's own error leads to the log."""
    if isinstance(exc, ToolRetryError | ModelRetry):
        return _said(exc.tool_retry.content if isinstance(exc, ToolRetryError) else exc.message)
    return f"The output {tool!r} failed with an internal error."


def interrupted(tool: str, call_id: str, text: str) -> ToolReturnPart:
    return ToolReturnPart(tool_name=tool, content=text, tool_call_id=call_id, outcome="interrupted")
