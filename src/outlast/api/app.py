"""`create_app(outlast)`: everything the runtime does, over HTTP. No globals: an app belongs to one runtime."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.routing import APIRoute

import outlast
from outlast.api import problems
from outlast.api.admission import Admission
from outlast.api.auth import Authenticate, Authenticator, ByJwt, ByKey, ByProgram, Gate
from outlast.api.blank import BlankParameters
from outlast.api.compression import Compressed
from outlast.api.limits import BodyLimit, Rate
from outlast.api.login import Logins
from outlast.api.pacing import Pacing
from outlast.api.routes import ai_sdk, events, feed, files, messages, sessions, turns, view
from outlast.api.routes.server import about, health, keys, login, me, metrics, page, pause, webhooks
from outlast.api.routes.work import completion, connections, requests, schedules, spawn, tasks
from outlast.api.running import OnlyWhileRunning
from outlast.api.sse import FrameCache
from outlast.api.strangers import Strangers
from outlast.observe.metrics import Metrics
from outlast.observe.requests import ObservedRequests, TracedQuery
from outlast.observe.stalls import watching_for_stalls
from outlast.runtime import Outlast
from outlast.settings import Settings

_V1 = (
    login,
    sessions,
    messages,
    turns,
    view,
    events,
    feed,
    spawn,
    tasks,
    requests,
    schedules,
    completion,
    connections,
    files,
    me,
    webhooks,
    about,
    keys,
    pause,
)


def create_app(
    runtime: Outlast[Any, Any], *, authenticate: Authenticate | None = None, log_requests: bool = False
) -> FastAPI:
    """An ASGI app for a runtime. It starts the runtime with itself, unless that already runs.

    Mounted in another app, its lifespan is not run: enter the runtime there. `authenticate` is asked first; then
    API keys and, if configured, JWTs. Nobody gets in without one of them. `log_requests` writes a line for each.
    """
    settings = runtime.settings
    app = FastAPI(
        title="Outlast",
        version=outlast.__version__,
        summary="A runtime for AI agents whose work takes longer than a request.",
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=_name_of,
        telemetry={"operation_spans": False, "logs": False},
        responses={**problems.responses(500)},
    )
    app.state.outlast = runtime
    app.state.heartbeat = settings.heartbeat.total_seconds()
    app.state.gate = gate = Gate(
        _authenticators(runtime, authenticate),
        Rate(settings.max_requests_per_minute, "requests"),
        Strangers(settings.max_strangers),
    )
    app.state.admission = Admission.of(settings, gate)
    app.state.frames = FrameCache()
    app.state.logins = Logins(lambda: runtime.keys)
    app.state.metrics = numbers = Metrics(runtime.open_work)
    runtime.listen(numbers.seen)
    problems.install(app)
    v1 = APIRouter(prefix="/v1")
    for each in _V1:
        v1.include_router(each.router)
    app.include_router(v1)
    app.include_router(ai_sdk.router)
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(page.router)
    _add_middleware(app, settings)
    app.add_middleware(ObservedRequests, metrics=numbers, is_logged=log_requests)
    app.add_middleware(Pacing, caller_of=gate.caller_of)
    app.add_middleware(OnlyWhileRunning, runtime=runtime)
    app.add_middleware(TracedQuery)
    return app


def _authenticators(runtime: Outlast[Any, Any], authenticate: Authenticate | None) -> Sequence[Authenticator]:
    settings, found = runtime.settings, list[Authenticator]()
    if authenticate is not None:
        found.append(ByProgram(authenticate))
    found.append(ByKey(lambda: runtime.keys))
    if settings.jwks_url is not None:
        found.append(ByJwt(settings.jwks_url, audience=settings.jwt_audience, issuer=settings.jwt_issuer))
    return found


def _add_middleware(app: FastAPI, settings: Settings) -> None:
    app.add_middleware(Compressed)
    app.add_middleware(BlankParameters)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Retry-After", "x-vercel-ai-ui-message-stream"],
        )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    runtime: Outlast[Any, Any] = app.state.outlast
    numbers: Metrics = app.state.metrics
    async with AsyncExitStack() as stack:
        stack.enter_context(watching_for_stalls(numbers.stalls.inc))
        if not runtime.is_running:
            await stack.enter_async_context(runtime)
        yield


def _name_of(route: APIRoute) -> str:
    return route.name
