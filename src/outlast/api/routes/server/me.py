"""Who asks, and what it may expect of this server."""

from fastapi import APIRouter

import outlast
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, Runtime, sees_money
from outlast.settings import Settings
from outlast.wire.about import FeaturesAnswer, LimitsAnswer, MeAnswer

router = APIRouter(tags=["about"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/me")
async def get_me(runtime: Runtime, caller: Caller) -> MeAnswer:
    """Who you are to this server, what you may do, and its version, features and limits."""
    settings = runtime.settings
    return MeAnswer(
        owner_id=caller.owner_id,
        name=caller.label,
        role=caller.role,
        scope=caller.scope,
        expires_at=caller.until,
        version=outlast.__version__,
        engine="embedded" if runtime.is_embedded else "distributed",
        now=runtime.keys.clock.now(),
        is_money_shown=sees_money(caller),
        features=FeaturesAnswer(
            connections=bool(settings.encryption_keys), public_completions=runtime.public_url is not None
        ),
        limits=_limits(settings),
    )


def _limits(settings: Settings) -> LimitsAnswer:
    return LimitsAnswer(
        max_text=settings.max_text,
        max_inbox=settings.max_inbox,
        max_body_bytes=settings.max_body_bytes,
        max_requests_per_minute=settings.max_requests_per_minute,
        max_open_requests=settings.max_open_requests_per_owner,
        max_open_tasks_per_session=settings.max_open_tasks_per_session,
        max_wait_seconds=settings.max_wait.total_seconds(),
        heartbeat_seconds=settings.heartbeat.total_seconds(),
    )
