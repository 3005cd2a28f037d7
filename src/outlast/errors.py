"""One tree of errors. Each has a stable `code`, and its message says what to do next."""

from collections.abc import Mapping
from typing import Any, ClassVar


class OutlastError(Exception):
    """Base of every error that Outlast raises on purpose."""

    code: ClassVar[str] = "outlast_error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details


class InvalidInput(OutlastError):
    """The caller's values cannot be accepted; nothing was stored."""

    code = "invalid_input"


class NotFound(OutlastError):
    """There is no such thing, or it belongs to another owner: the answer is the same."""

    code = "not_found"


class Conflict(OutlastError):
    """The thing is not in a state that allows this."""

    code = "conflict"


class IdempotencyMismatch(Conflict):
    """The idempotency key was used within a day for something else."""

    code = "idempotency_mismatch"


class SessionBusy(Conflict):
    """A turn is running, and what was asked for does not wait for its end."""

    code = "session_busy"


class InboxFull(OutlastError):
    """The session already holds as many waiting messages as it may."""

    code = "inbox_full"


class TooManyTasks(OutlastError):
    """The session has as many open tasks as it may: `details["open"]` lists them."""

    code = "too_many_tasks"


class TooManyRequests(OutlastError):
    """The owner sends faster, or has more work waiting, than its limits allow."""

    code = "too_many_requests"


class LimitReached(TooManyRequests):
    """The owner has spent what it may in a day: `details["reset_at"]` says when turns start again."""

    code = "limit_reached"


class Unauthenticated(OutlastError):
    """Nobody is named by the request, or the name was not proven."""

    code = "unauthenticated"


class Forbidden(OutlastError):
    """Whoever asks has not the role or scope for this, whatever the id."""

    code = "forbidden"


class BodyTooLarge(OutlastError):
    """The request has more bytes than the server reads."""

    code = "body_too_large"


class HeadTooLarge(OutlastError):
    """The head of the request has more bytes than the server reads."""

    code = "head_too_large"


class RequestTimeout(OutlastError):
    """The request did not arrive in time: nothing of it was done."""

    code = "request_timeout"


class Unreachable(OutlastError):
    """The server did not answer: what was asked may or may not have arrived."""

    code = "unreachable"


class NotReached(OutlastError):
    """A request to an address that somebody has named got no answer, or was not sent at all."""

    code = "not_reached"


class ServerFault(OutlastError):
    """The server answered with an error that has no class here; `details` has its `code` and `status`."""

    code = "server_fault"


class NoEncryptionKey(OutlastError):
    """This is kept encrypted only, and no key for that is set: nothing was stored."""

    code = "no_encryption_key"


class NoServerKey(OutlastError):
    """A server would complete an operation, and no key for that is set: nothing was looked up."""

    code = "no_server_key"


class StoreUnavailable(OutlastError):
    """The database did not take the commit: nothing was acknowledged; try again."""

    code = "store_unavailable"

    @property
    def is_closed(self) -> bool:
        """This process has closed it, or ends without it: it is not worth waiting for."""
        return bool(self.details.get("is_closed"))


class NoWorkers(OutlastError):
    """Nobody is there to run work: everything is accepted and kept, and nothing is started."""

    code = "no_workers"


class NotStarted(OutlastError):
    """The runtime was not entered yet, or was left: nothing is accepted."""

    code = "not_started"


class SchemaMismatch(OutlastError):
    """The database was written by a version this process does not know."""

    code = "schema_mismatch"


class DatabaseInUse(OutlastError):
    """Another process already runs the work in this database file."""

    code = "database_in_use"


class AttemptLost(OutlastError):
    """This attempt was superseded: its writes are refused and it must stop."""

    code = "attempt_lost"
