"""What the resource of a bound session is like at this moment: loaded for each turn, and shown to its model as data."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from pydantic_ai.framing import register_tag, wrap
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestContext

from outlast.containment import Contained
from outlast.ids import SessionId
from outlast.values import clean
from outlast.values.escape import escape_whole
from outlast.values.redact import last_line
from outlast.values.secrets import Secrets

log = structlog.get_logger("outlast.turns")

MOST_CHARACTERS = 32_000
_SECONDS = 30.0
_RESOURCE = register_tag("bound_resource")
_FAILED = "What it is like at this moment could not be loaded."


@dataclass(frozen=True, slots=True)
class BoundResource:
    """What a session is about, and whose it is; given to the function that loads it."""

    kind: str
    id: str
    owner_id: str
    session_id: SessionId


LoadResource = Callable[[BoundResource], Awaitable[str]]


class LiveResource:
    """One per run of an agent: what was loaded holds for all its requests. It is sent last, and never stored."""

    def __init__(
        self, loaders: Mapping[str, LoadResource], owner_id: str, session_id: SessionId, secrets: Secrets
    ) -> None:
        self._loaders = loaders
        self._of = (owner_id, session_id)
        self._secrets = secrets
        self._loaded: dict[tuple[str, str], str] = {}

    async def shown(self, request: ModelRequestContext, binding: Mapping[str, Any]) -> ModelRequestContext:
        """The request with the resource behind its last message, if this program can load its kind."""
        load = self._loaders.get(binding["kind"])
        last = request.messages[-1] if request.messages else None
        if load is None or not isinstance(last, ModelRequest):
            return request
        about = (str(binding["kind"]), str(binding["id"]))
        if about not in self._loaded:
            self._loaded[about] = await self._load(load, BoundResource(*about, *self._of))
        part = UserPromptPart(wrap(_RESOURCE, escape_whole(self._loaded[about]), kind=about[0], id=about[1]))
        return replace(request, messages=[*request.messages[:-1], replace(last, parts=[*last.parts, part])])

    async def _load(self, load: LoadResource, resource: BoundResource) -> str:
        try:
            with Contained():
                found = await asyncio.wait_for(load(resource), _SECONDS)
        except Exception as exc:
            log.error("a bound resource was not loaded", kind=resource.kind, error=last_line(exc))
            return _FAILED
        text = clean.text(found if isinstance(found, str) else clean.words_of(found))  # pyright: ignore[reportUnnecessaryIsInstance]
        shown = self._secrets.mask(text)
        return shown if len(shown) <= MOST_CHARACTERS else f"{shown[:MOST_CHARACTERS]}\n[cut here]"
