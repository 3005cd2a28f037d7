"""What a program holds, in the same words beside the runtime and over HTTP: for tests that run over both."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from outlast import Outlast
from outlast.client import Client
from outlast.handles.connections import Connections
from outlast.handles.keys import Keys
from outlast.handles.schedules import Schedules
from outlast.handles.sessions import Sessions
from outlast.handles.tasks import Tasks
from outlast.handles.webhooks.webhooks import Webhooks
from outlast.testing import ScriptedModel
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime

OWNER = "ada"


@dataclass(frozen=True)
class Library:
    """The handles of an owner, beside the runtime."""

    sessions: Sessions
    tasks: Tasks
    schedules: Schedules
    keys: Keys
    connections: Connections
    webhooks: Webhooks


Held = Library | Client
Hold = Callable[..., AbstractAsyncContextManager[Held]]


def of_library(outlast: Outlast[Any, Any]) -> Library:
    return Library(
        outlast.owned_by(OWNER),
        outlast.tasks_of(OWNER),
        outlast.schedules_of(OWNER),
        outlast.keys,
        outlast.connections_of(OWNER),
        outlast.webhooks_of(OWNER),
    )


def holding(runtime: Runtime, *, over_http: bool) -> Hold:
    """Opens the runtime and gives its handles, or those of the client of a server that serves it over a socket."""

    @asynccontextmanager
    async def held(model: ScriptedModel | None = None, **options: Any) -> AsyncGenerator[Held]:
        if over_http:
            async with serving(runtime(model, **options)) as server, client_of(server, OWNER) as client:
                yield client
        else:
            async with runtime(model, **options) as outlast:
                yield of_library(outlast)

    return held
