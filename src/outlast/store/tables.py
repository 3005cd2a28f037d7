"""The tables, the same on SQLite and PostgreSQL. Instants are microseconds, structured values JSON text."""

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _instant(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _session_id() -> sa.Column[str]:
    return sa.Column("session_id", sa.Text, sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False)


sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("parent_id", sa.Text),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("title", sa.Text),
    sa.Column("metadata", sa.Text, nullable=False),
    sa.Column("budget_seconds", sa.Float),
    sa.Column("turn_id", sa.Text),
    sa.Column("is_held", sa.Boolean, nullable=False),
    sa.Column("woken_turns", sa.Integer, nullable=False),
    sa.Column("first_event", sa.BigInteger, nullable=False),
    sa.Column("last_event", sa.BigInteger, nullable=False),
    sa.Column("last_message", sa.Integer, nullable=False),
    sa.Column("last_input", sa.Integer, nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("is_archived", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("answered_event", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("read_event", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("interrupted_calls", sa.Text, nullable=False, server_default="[]"),
    sa.Column("preview", sa.Text),
    sa.Column("permissions", sa.Text),
    sa.Column("is_dry_run", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("binding", sa.Text),
    sa.Column("resource", sa.Text),
    sa.Column("is_titled_by_model", sa.Boolean, nullable=False, server_default=sa.false()),
    _instant("created_at"),
    _instant("updated_at"),
    _instant("deleted_at", nullable=True),
    sa.Index("ix_sessions_owner_id_updated_at", "owner_id", "updated_at"),
    sa.Index("ix_sessions_parent_id", "parent_id"),
    sa.Index("uq_sessions_owner_id_external_id", "owner_id", "external_id", unique=True),
    sa.Index("uq_sessions_owner_id_resource", "owner_id", "resource", unique=True),
    sa.Index(
        "ix_sessions_deleted_at",
        "deleted_at",
        sqlite_where=sa.text("deleted_at IS NOT NULL"),
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    ),
)

creations = sa.Table(
    "creations",
    metadata,
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    _instant("created_at"),
    sa.PrimaryKeyConstraint("owner_id", "idempotency_key"),
)

inputs = sa.Table(
    "inputs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _session_id(),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.Column("was_busy", sa.Boolean, nullable=False),
    sa.Column("turn_id", sa.Text),
    sa.Column("message", sa.Integer),
    _instant("created_at"),
    _instant("delivered_at", nullable=True),
    sa.UniqueConstraint("session_id", "idempotency_key"),
    sa.Index("ix_inputs_session_id_state", "session_id", "state"),
    sa.Index("ix_inputs_owner_id_created_at", "owner_id", "created_at"),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _session_id(),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("crashes", sa.Integer, nullable=False),
    sa.Column("worker_id", sa.Text),
    sa.Column("model", sa.Text),
    sa.Column("first_event", sa.BigInteger, nullable=False),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("usage", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("stop_reason", sa.Text),
    sa.Column("is_waiting", sa.Boolean, nullable=False, server_default=sa.false()),
    _instant("stop_requested_at", nullable=True),
    _instant("admitted_at", nullable=True),
    _instant("not_before", nullable=True),
    _instant("created_at"),
    _instant("started_at", nullable=True),
    _instant("ended_at", nullable=True),
    sa.Index("ix_turns_session_id_first_event", "session_id", "first_event"),
    sa.Index(
        "ix_turns_open",
        "owner_id",
        "id",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
    sa.Index(
        "uq_turns_one_running_per_session",
        "session_id",
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
)

messages = sa.Table(
    "messages",
    metadata,
    _session_id(),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("turn_id", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("event", sa.BigInteger, nullable=False),
    _instant("created_at"),
    # The turn that answers anew: the model no longer sees this message.
    sa.Column("superseded_by", sa.Text),
    sa.PrimaryKeyConstraint("session_id", "position"),
    sqlite_with_rowid=False,
)

events = sa.Table(
    "events",
    metadata,
    _session_id(),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    _instant("at"),
    sa.Column("turn_id", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.Column("data", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("session_id", "number"),
    sqlite_with_rowid=False,
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _session_id(),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("turn_id", sa.Text),
    sa.Column("call_id", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False, server_default="call"),
    sa.Column("agent", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("key", sa.Text),
    sa.Column("tool", sa.Text),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("progress", sa.Text),
    sa.Column("request", sa.Text),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("late_outcome", sa.Text),
    sa.Column("settled", sa.Text),
    sa.Column("usage", sa.Text),
    sa.Column("links", sa.Text, nullable=False, server_default="{}"),
    sa.Column("artifacts", sa.Text, nullable=False),
    sa.Column("metadata", sa.Text, nullable=False),
    sa.Column("wake", sa.Text, nullable=False),
    sa.Column("group", sa.Text),
    sa.Column("may_run_again", sa.Boolean, nullable=False),
    sa.Column("progress_seconds", sa.Float),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer),
    sa.Column("worker_id", sa.Text),
    _instant("deadline_at", nullable=True),
    _instant("cancel_requested_at", nullable=True),
    _instant("admitted_at", nullable=True),
    _instant("created_at"),
    _instant("started_at", nullable=True),
    _instant("ended_at", nullable=True),
    _instant("output_removed_at", nullable=True),
    sa.Index("ix_tasks_owner_id_id", "owner_id", "id"),
    sa.Index("ix_tasks_owner_id_state", "owner_id", "state"),
    sa.Index("ix_tasks_session_id_state", "session_id", "state"),
    sa.Index("ix_tasks_session_id_call_id", "session_id", "call_id"),
    sa.Index("uq_tasks_session_id_key", "session_id", "key", unique=True),
    sa.Index(
        "ix_tasks_spawned",
        "owner_id",
        "created_at",
        sqlite_where=sa.text("ended_at IS NULL AND origin = 'spawn'"),
        postgresql_where=sa.text("ended_at IS NULL AND origin = 'spawn'"),
    ),
    sa.Index(
        "ix_tasks_ended",
        "ended_at",
        sqlite_where=sa.text("ended_at IS NOT NULL AND output_removed_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NOT NULL AND output_removed_at IS NULL"),
    ),
    sa.Index(
        "ix_tasks_open",
        "worker_id",
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
)

summaries = sa.Table(
    "summaries",
    metadata,
    _session_id(),
    # The position of the last message that it stands for.
    sa.Column("up_to", sa.Integer, nullable=False),
    # The request that the model is sent in place of them, as JSON.
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=True),
    sa.Column("usage", sa.Text, nullable=True),
    sa.Column("turn_id", sa.Text, nullable=True),
    _instant("created_at"),
    sa.PrimaryKeyConstraint("session_id", "up_to"),
    sqlite_with_rowid=False,
)

outputs = sa.Table(
    "outputs",
    metadata,
    _session_id(),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("session_id", "call_id", "number"),
    sqlite_with_rowid=False,
)

results = sa.Table(
    "results",
    metadata,
    _session_id(),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("characters", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("session_id", "call_id"),
    sqlite_with_rowid=False,
)

files = sa.Table(
    "files",
    metadata,
    _session_id(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("made_by", sa.Text, nullable=False),
    _instant("created_at"),
    sa.PrimaryKeyConstraint("session_id", "name"),
    sqlite_with_rowid=False,
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("agents", sa.Text, nullable=False, server_default="[]"),
    _instant("started_at"),
    _instant("seen_at"),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("models", sa.Text, nullable=False),
    _instant("recorded_at"),
)

agent_tools = sa.Table(
    "agent_tools",
    metadata,
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    # False: listed by a toolset that may say something else the next time, such as an MCP server.
    sa.Column("is_declared", sa.Boolean, nullable=False),
    sa.PrimaryKeyConstraint("agent", "name"),
)

feed = sa.Table(
    "feed",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, nullable=False),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    _instant("at"),
    sa.Index("ix_feed_owner_id_number", "owner_id", "number"),
    sqlite_autoincrement=True,
)

removals = sa.Table(
    "removals",
    metadata,
    # Up to where a list no longer has what it had.
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("up_to", sa.BigInteger, nullable=False),
    _instant("at"),
)

keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    _instant("created_at"),
    _instant("expires_at", nullable=True),
    _instant("used_at", nullable=True),
    _instant("revoked_at", nullable=True),
    sa.Column("made_with", sa.Text, nullable=True),
    sa.Index("ix_keys_owner_id", "owner_id"),
    sa.Index("ix_keys_made_with", "made_with"),
)

kept_secrets = sa.Table(
    "kept_secrets",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    _instant("created_at"),
    sa.Index("ix_kept_secrets_mark", "mark"),
    sqlite_autoincrement=True,
)

connections = sa.Table(
    "connections",
    metadata,
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("key_mark", sa.Text, nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    _instant("used_at", nullable=True),
    sa.PrimaryKeyConstraint("owner_id", "provider"),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("is_for_all", sa.Boolean, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    # A JSON list of what it is told of; NULL: of everything.
    sa.Column("types", sa.Text, nullable=True),
    sa.Column("sealed", sa.Text, nullable=False),
    # The secret before the last one, as long as both sign.
    sa.Column("sealed_before", sa.Text, nullable=True),
    _instant("before_until", nullable=True),
    sa.Column("key_mark", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("off_reason", sa.Text, nullable=True),
    _instant("failing_since", nullable=True),
    _instant("created_at"),
    _instant("updated_at"),
    sa.Index("ix_webhooks_owner_id", "owner_id"),
)

webhook_deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    sa.Column("webhook_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("told", sa.Text, nullable=False),
    _instant("at"),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    # When it is sent next; while it is sent, when somebody else may send it again.
    _instant("due_at"),
    # Retries end then: 24 hours after it happened, or after somebody asked for it again.
    _instant("until"),
    _instant("ended_at", nullable=True),
    sa.Column("status", sa.Integer, nullable=True),
    sa.Column("error", sa.Text, nullable=True),
    sa.Column("log", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("webhook_id", "session_id", "event"),
    sa.Index("ix_webhook_deliveries_session_id", "session_id"),
    sa.Index("ix_webhook_deliveries_at", "webhook_id", "at"),
    sa.Index(
        "ix_webhook_deliveries_due",
        "webhook_id",
        "due_at",
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    ),
)

spending = sa.Table(
    "spending",
    metadata,
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("day", sa.Text, nullable=False),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("unpriced_requests", sa.BigInteger, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cache_read_tokens", sa.BigInteger, nullable=False),
    sa.Column("cache_write_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_microdollars", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("owner_id", "day"),
)

pauses = sa.Table(
    "pauses",
    metadata,
    # One row while nothing new is started, none otherwise.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("by", sa.Text, nullable=False),
    _instant("since"),
)

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _session_id(),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("title", sa.Text),
    sa.Column("text", sa.Text),
    sa.Column("tool", sa.Text),
    # How its tasks are made, and the condition of a monitor.
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("cron", sa.Text),
    _instant("at", nullable=True),
    sa.Column("zone", sa.Text, nullable=False),
    sa.Column("missed", sa.Text, nullable=False),
    sa.Column("overlap", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    # NULL unless it is active.
    _instant("due_at", nullable=True),
    sa.Column("made_by", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.Column("last_fire", sa.Integer, nullable=False),
    sa.Column("fired", sa.Integer, nullable=False),
    _instant("last_fired_at", nullable=True),
    sa.Column("last_result", sa.Text),
    _instant("created_at"),
    _instant("updated_at"),
    sa.Index("ix_schedules_session_id", "session_id"),
    sa.Index("ix_schedules_owner_id", "owner_id"),
    sa.Index("uq_schedules_session_id_key", "session_id", "key", unique=True),
    sa.Index(
        "ix_schedules_due_at",
        "due_at",
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    ),
)

fires = sa.Table(
    "fires",
    metadata,
    sa.Column("schedule_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    _session_id(),
    _instant("due_at"),
    _instant("at"),
    sa.Column("how", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("late_seconds", sa.Float, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("input_id", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.PrimaryKeyConstraint("schedule_id", "number"),
    sa.Index("ix_fires_session_id", "session_id"),
    sa.Index(
        "ix_fires_queued",
        "schedule_id",
        "number",
        sqlite_where=sa.text("outcome = 'queued'"),
        postgresql_where=sa.text("outcome = 'queued'"),
    ),
)
