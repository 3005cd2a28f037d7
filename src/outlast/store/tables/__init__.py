"""The tables, the same on SQLite and PostgreSQL. Instants are microseconds, structured values JSON text.

Whoever imports one has all of them in `metadata`.
"""

from outlast.store.tables.access import connections, kept_secrets, keys
from outlast.store.tables.cluster import agent_tools, agents, pauses, spending, workers
from outlast.store.tables.columns import metadata
from outlast.store.tables.conversation import creations, events, inputs, messages, sessions, summaries, turns
from outlast.store.tables.recurring import fires, schedules
from outlast.store.tables.removed import removed_logs, removed_sessions, turn_folds
from outlast.store.tables.searching import searched
from outlast.store.tables.telling import feed, removals, webhook_deliveries, webhooks
from outlast.store.tables.work import files, outputs, results, tasks

__all__ = [
    "agent_tools",
    "agents",
    "connections",
    "creations",
    "events",
    "feed",
    "files",
    "fires",
    "inputs",
    "kept_secrets",
    "keys",
    "messages",
    "metadata",
    "outputs",
    "pauses",
    "removals",
    "removed_logs",
    "removed_sessions",
    "results",
    "schedules",
    "searched",
    "sessions",
    "spending",
    "summaries",
    "tasks",
    "turn_folds",
    "turns",
    "webhook_deliveries",
    "webhooks",
    "workers",
]
