"""What each part is told of the settings: a part knows its own few values, never the settings as a whole."""

from outlast.calls.hook import CallPolicy
from outlast.duties.retention import Kept
from outlast.limits import Limits
from outlast.runs.policy import LoopPolicy
from outlast.settings import Settings
from outlast.values.sealing import Sealing


def loop_policy(settings: Settings) -> LoopPolicy:
    return LoopPolicy(
        coalesce=settings.coalesce,
        idle_timeout=settings.model_idle_timeout,
        model_retries=settings.model_retries,
        model_backoff=settings.model_backoff,
        max_requests=settings.max_requests_per_turn,
        calls=CallPolicy(settings.budget, settings.call_deadline, settings.stop_grace),
        steer_parks_after=settings.steer_parks_after,
        context_window=settings.context_window,
        compact_above=settings.compact_above,
        history_window=settings.history_window,
        longest=settings.turn_deadline,
        most_cost=settings.turn_cost_limit,
    )


def kept(settings: Settings) -> Kept:
    return Kept(
        output=settings.keep_output,
        feed=settings.keep_feed,
        deliveries=settings.keep_deliveries,
        fires=settings.keep_fires,
        events=settings.keep_events,
        archived=settings.keep_archived,
    )


def limits(settings: Settings) -> Limits:
    return Limits(
        max_inbox=settings.max_inbox,
        max_busy_per_minute=settings.max_busy_messages_per_minute,
        max_text=settings.max_text,
        max_running_per_owner=settings.max_turns_per_owner,
        max_queued_per_owner=settings.max_queued_turns_per_owner,
        max_woken=settings.max_woken_turns,
        company=settings.wake_company,
        max_open_tasks=settings.max_open_tasks_per_session,
        max_children=settings.max_sub_sessions,
        max_depth=settings.max_depth,
        max_claims=settings.max_claims,
        call_deadline=settings.call_deadline,
        max_spawned_per_session=settings.max_spawned_per_session,
        max_spawned_per_owner=settings.max_spawned_per_owner,
        max_schedules_per_session=settings.max_schedules_per_session,
        max_schedules_per_owner=settings.max_schedules_per_owner,
        daily_cost=settings.daily_cost_limit,
        request_deadline=settings.request_deadline,
        max_file_bytes=settings.max_file_bytes,
        max_session_bytes=settings.max_session_bytes,
    )


def sealing(settings: Settings) -> Sealing | None:
    """None without a key: then connections are refused, and nothing is kept unsealed."""
    keys = [each.get_secret_value() for each in settings.encryption_keys]
    return Sealing(keys) if keys else None
