"""What all sessions share: workers, agents, spending, a pause."""

import sqlalchemy as sa

from outlast.store.tables.columns import instant, metadata

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("agents", sa.Text, nullable=False, server_default="[]"),
    instant("started_at"),
    instant("seen_at"),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("models", sa.Text, nullable=False),
    instant("recorded_at"),
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
    instant("since"),
)
