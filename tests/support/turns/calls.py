"""A call as a worker begins it, for tests of what surrounds it."""

from typing import Any

from outlast.calls.call import RunningCall
from outlast.ids import SessionId
from outlast.values.secrets import Secrets


class _Nowhere:
    """A channel for calls that say nothing."""

    def progress(self, progress: dict[str, Any]) -> None: ...

    def output(self, text: str) -> None: ...

    def artifact(self, name: str, data: bytes, media_type: str) -> str:
        return name


def silent_call(tool: str = "note") -> RunningCall:
    return RunningCall(SessionId("ses_1"), None, "call_1", tool, {"text": "a river"}, Secrets(), _Nowhere())
