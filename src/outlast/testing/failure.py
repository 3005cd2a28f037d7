"""Failures as a provider causes them."""

from typing import NoReturn, TypeAlias

from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
)

from outlast.testing.step import Failure

Category: TypeAlias = type[ModelRateLimitError | ModelUnavailableError | ModelServerError | ModelRequestRejectedError]

CATEGORIES: dict[int, Category] = {
    401: ModelAuthenticationError,
    403: ModelAuthenticationError,
    404: ModelNotFoundError,
    429: ModelRateLimitError,
    503: ModelUnavailableError,
    529: ModelOverloadedError,
}


def raise_failure(failure: Failure, *, model_name: str, in_stream: bool) -> NoReturn:
    """Raise the scripted exception, or the one pydantic-ai's own models raise for that status."""
    if isinstance(failure.cause, BaseException):
        raise failure.cause
    raise ModelHTTPError.for_category(
        _category(failure.cause),
        status_code=failure.cause,
        model_name=model_name,
        body=failure.body,
        retry_after=failure.retry_after,
        in_stream=in_stream,
    )


def _category(status: int) -> Category:
    return CATEGORIES.get(status, ModelServerError if status >= 500 else ModelRequestRejectedError)
