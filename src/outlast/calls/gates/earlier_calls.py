"""Which tools were called in a session before."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from outlast.ids import SessionId
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import tasks


class EarlierCalls:
    """From the messages of the session, which `messages` gives, and from its tasks.

    `older`: messages before those, which the model is no longer sent; they are read only if nothing else tells.
    """

    def __init__(
        self,
        database: Database,
        session_id: SessionId,
        messages: Callable[[], Awaitable[Sequence[ModelMessage]]],
        older: Callable[[], Awaitable[Sequence[ModelMessage]]] | None = None,
    ) -> None:
        self._database = database
        self._session_id = session_id
        self._messages = messages
        self._older = older

    async def has(self, tool: str) -> bool:
        """Whether a call of the tool has succeeded, at once or in the background."""
        if _has_succeeded(await self._messages(), tool):
            return True
        look = partial(tasks.has_succeeded, session_id=self._session_id, tool=tool)
        if await retry_while_unavailable(lambda: self._database.glance(look)):
            return True
        return self._older is not None and _has_succeeded(await self._older(), tool)


def _has_succeeded(messages: Sequence[ModelMessage], tool: str) -> bool:
    return any(_succeeded(part, tool) for message in messages for part in _parts(message))


def _parts(message: ModelMessage) -> Sequence[Any]:
    return message.parts if isinstance(message, ModelRequest) else ()


def _succeeded(part: Any, tool: str) -> bool:
    if not isinstance(part, ToolReturnPart) or part.tool_name != tool or part.outcome != "success":
        return False
    content: Any = part.content
    # Of a call that goes on or waits there is only a handle; one that was simulated told nothing.
    is_stand_in = isinstance(content, dict) and cast(dict[str, Any], content).get("type") in ("background", "dry_run")
    return not is_stand_in
