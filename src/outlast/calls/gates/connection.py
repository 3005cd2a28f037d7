"""Connections: a tool that requires one waits until its owner has set it."""

from outlast.calls.call import Connections
from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict, Wait
from outlast.calls.within.connection import ConnectionRequired
from outlast.errors import InvalidInput
from outlast.values import clean

HAD_BEGUN = (
    "The call had begun when it asked for the connection, and its tool is not run again by itself: what it did before "
    "may have taken effect."
)


class ConnectionGate:
    """A gate for tools with the hint `requires={"connection": "github"}`."""

    def __init__(self, connections: Connections | None) -> None:
        self._connections = connections

    async def admit(self, call: CallRequest) -> Verdict:
        for each in call.hints.requires:
            if each.kind == "connection" and self._connections is not None:
                try:
                    await self._connections.check(call.owner_id, each.name)
                except ConnectionRequired as missing:
                    return wait_for(missing) or Answer(failure=clean.words_of(missing, most=None))
                except InvalidInput as exc:
                    return Answer(failure=str(exc))
        return RUN


def wait_for(missing: ConnectionRequired) -> Wait | None:
    """None: nobody can set it."""
    if not missing.can_wait:
        return None
    seen_at = None if missing.seen_at is None else missing.seen_at.isoformat()
    details = {"provider": missing.provider, "url": missing.url, "seen_at": seen_at}
    return Wait("connection", clean.words_of(missing, most=None), details)


def connection_needed(exc: BaseException | None) -> ConnectionRequired | None:
    """What a call failed with, if that is a connection that it asked for."""
    seen = set[int]()
    while exc is not None and id(exc) not in seen:
        if isinstance(exc, ConnectionRequired):
            return exc
        seen.add(id(exc))
        exc = exc.__cause__
    return None
