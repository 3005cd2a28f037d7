"""Why a model or an agent failed a turn, in words for people, and whether trying again can help."""

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
    UsageLimitExceeded,
    UserError,
)

from outlast.ids import TurnId, reference_id
from outlast.transitions.turns.turn_failure import Failure
from outlast.values.clean import words_of
from outlast.values.redact import error_chain, last_line, redact, without_money
from outlast.values.secrets import Secrets

log = structlog.get_logger("outlast.turns")

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
_COST_LIMIT = "The agent could not run: it has reached its limit of cost. The log says which."


def is_transient(exc: BaseException) -> bool:
    """Worth another try by itself: the provider was busy, unreachable or broken for a moment."""
    return isinstance(exc, _TRANSIENT)


def is_too_long(exc: BaseException) -> bool:
    return isinstance(exc, ModelContextWindowExceededError)


def cannot_stream(exc: BaseException) -> bool:
    """The model has no streamed requests: it says so before it sends anything."""
    is_function_model = isinstance(exc, AssertionError) and "`stream_function`" in words_of(exc)
    return is_function_model or isinstance(exc, NotImplementedError)


def _log_failure(exc: BaseException, turn_id: TurnId, reference: str, secrets: Secrets) -> None:
    """For whoever runs the program. A provider's refusal has one line: no frame of ours explains it."""
    why = secrets.mask(last_line(exc))
    if isinstance(exc, ModelAPIError):
        log.error("turn failed: the model's provider said no", turn_id=turn_id, reference=reference, error=why)
    else:
        chain = secrets.mask(error_chain(exc))
        log.error("turn failed", turn_id=turn_id, reference=reference, error=why, chain=chain)


def describe(exc: BaseException, turn_id: TurnId, secrets: Secrets) -> Failure:
    """Any exception that ended a turn, as a failure; its whole chain goes to the log.

    Its words are stored once for everybody, so they name no amounts of money.
    """
    if isinstance(exc, Failure):
        return exc
    reference, said = reference_id(), secrets.mask(redact(without_money(words_of(exc))))
    _log_failure(exc, turn_id, reference, secrets)
    if is_too_long(exc):
        return Failure("context_too_long", "The conversation no longer fits the model's window.", True, reference)
    if isinstance(exc, ModelAPIError):
        return Failure("model_error", f"The model's provider failed: {said}", True, reference)
    if isinstance(exc, UnexpectedModelBehavior):
        return Failure("model_misbehaved", f"The model's answer was not usable: {said}", True, reference)
    if isinstance(exc, UserError) and "deferred tool call was present" in words_of(exc):
        return Failure("deferred_call", _DEFERRED, False, reference)
    if isinstance(exc, UsageLimitExceeded) and "cost" in words_of(exc):
        return Failure("agent_error", _COST_LIMIT, True, reference)
    if isinstance(exc, UserError | AgentRunError):
        return Failure("agent_error", f"The agent could not run: {said}", True, reference)
    return Failure(
        "internal_error", f"The turn failed with an internal error (reference {reference}).", True, reference
    )
