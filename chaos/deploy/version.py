"""The next release of the package: a copy of it with one more migration.

Expand only: a column that old code does not name, a wider type, an index and a table. So the old version, which runs
the package itself, goes on meanwhile; but it is not started again on a schema that it does not know.
"""

import shutil
from pathlib import Path

import outlast

REVISION = "0003"
_MIGRATION = f'''"""What the next release needs. Nothing that the one before reads or writes is taken away."""

import sqlalchemy as sa
from alembic import op

revision = "{REVISION}"
down_revision = "{{before}}"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("region", sa.Text(), nullable=False, server_default="north"))
    op.alter_column("turns", "requests", type_=sa.BigInteger(), existing_type=sa.Integer(), existing_nullable=False)
    op.create_index("ix_turns_agent_state", "turns", ["agent", "state"])
    op.create_table("regions", sa.Column("id", sa.Text(), primary_key=True))
'''


def next_release(folder: Path) -> Path:
    """Make it; gives the folder to put on the path of Python."""
    package = folder / "outlast"
    shutil.copytree(Path(outlast.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    known = package / "store" / "migrations" / "__init__.py"
    names: dict[str, tuple[str, ...]] = {}
    exec(known.read_text(), names)  # the package's own list of revisions
    before = names["KNOWN"][-1]
    known.write_text(f'{known.read_text()}\nKNOWN = (*KNOWN, "{REVISION}")\n')
    versions = package / "store" / "migrations" / "versions"
    (versions / f"v{REVISION}_next.py").write_text(_MIGRATION.format(before=before))
    return folder
