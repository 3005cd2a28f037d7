"""Why a turn failed, in words for people, and whether trying again can help."""

from dataclasses import dataclass
from typing import Any

import structlog
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from outlast.ids import TurnId, reference_id
from outlast.tools.redact import error_chain, last_line, redact
from outlast.tools.secrets import Secrets

log = structlog.get_logger("outlast.turns")

CRASH_LOOP = "crash_loop"
_TRANSIENT = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
    ModelRequestTimeout,
)


_DEFERRED = (
    "A tool asked for an approval, or for a result from outside, and neither can be given to a turn yet. What is "
    "known of the call stands in its end. Let the tool run without, or give the agent the capability "
    "HandleDeferredToolCalls."
)


@dataclass(eq=False)
class Failure(Exception):
    """The end of a turn that did not work out."""

    kind: str
    message: str
    is_retryable: bool = True
    reference: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "is_retryable": self.is_retryable,
            "reference": self.reference,
        }


def is_transient(exc: BaseException) -> bool:
    """Worth another try by itself: the provider was busy, unreachable or broken for a moment."""
    return isinstance(exc, _TRANSIENT)


def is_too_long(exc: BaseException) -> bool:
    return isinstance(exc, ModelContextWindowExceededError)


def cannot_stream(exc: BaseException) -> bool:
    """The model has no streamed requests: it says so before it sends anything."""
    is_function_model = isinstance(exc, AssertionError) and "`stream_function`" in str(exc)
    return is_function_model or isinstance(exc, NotImplementedError)


def idle(seconds: float) -> Failure:
    return Failure("idle_timeout", f"The model sent nothing for {seconds:g} seconds. Retry the turn.")


def turn_limit(requests: int) -> Failure:
    return Failure("turn_limit", f"The turn made {requests} model requests, its limit. Retry it to continue.")


def crash_loop(claims: int) -> Failure:
    return Failure(
        CRASH_LOOP,
        f"The process ended {claims} times while this turn ran, so it is not tried again by itself. "
        "Find out what ends the process, then retry the turn.",
    )


def _tell(exc: BaseException, turn_id: TurnId, reference: str, secrets: Secrets) -> None:
    """To whoever runs the program: a provider's refusal in one line, for nothing in our frames explains it."""
    why = secrets.mask(last_line(exc))
    if isinstance(exc, ModelAPIError):
        log.error("turn failed: the model's provider said no", turn_id=turn_id, reference=reference, error=why)
    else:
        chain = secrets.mask(error_chain(exc))
        log.error("turn failed", turn_id=turn_id, reference=reference, error=why, chain=chain)


def describe(exc: BaseException, turn_id: TurnId, secrets: Secrets) -> Failure:
    """Any exception that ended a turn, as a failure; its whole chain goes to the log."""
    if isinstance(exc, Failure):
        return exc
    reference, said = reference_id(), secrets.mask(redact(str(exc)))
    _tell(exc, turn_id, reference, secrets)
    if is_too_long(exc):
        return Failure("context_too_long", "The conversation no longer fits the model's window.", True, reference)
    if isinstance(exc, ModelAPIError):
        return Failure("model_error", f"The model's provider failed: {said}", True, reference)
    if isinstance(exc, UnexpectedModelBehavior):
        return Failure("model_misbehaved", f"The model's answer was not usable: {said}", True, reference)
    if isinstance(exc, UserError) and "deferred tool call was present" in str(exc):
        return Failure("deferred_call", _DEFERRED, False, reference)
    if isinstance(exc, UserError | AgentRunError):
        return Failure("agent_error", f"The agent could not run: {said}", True, reference)
    return Failure(
        "internal_error", f"The turn failed with an internal error (reference {reference}).", True, reference
    )
