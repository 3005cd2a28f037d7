"""What a search of sessions looks into: their titles and what people wrote, in pieces, without regard to case.

PostgreSQL finds them by `grams`; SQLite by `searched_grams`, a table of FTS5 beside this one that triggers keep.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from outlast.store.tables.columns import metadata, session_id

searched = sa.Table(
    "searched",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, nullable=False),
    session_id(),
    # "title", or the id of a message.
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("piece", sa.Integer, nullable=False),
    # Three characters that stand for the owner: a gram like those of the text.
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("grams", postgresql.TSVECTOR().with_variant(sa.Text(), "sqlite"), nullable=True),
    sa.UniqueConstraint("session_id", "source", "piece"),
    sa.Index("ix_searched_grams", "grams", postgresql_using="gin").ddl_if(dialect="postgresql"),
)
