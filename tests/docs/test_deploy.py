"""The deployment guide and the files in `deploy/` say what the code has: settings, commands and options."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from docs.scale_page import SETUPS, costs, scale_page
from outlast import Settings
from outlast.cli.main import app

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "deploy.md"
FILES = [GUIDE, *sorted((ROOT / "deploy").iterdir())]
VARIABLE = re.compile(r"\bOUTLAST_[A-Z_]+[A-Z]\b")
COMMAND = re.compile(r"(?:bin/|command: |^ {4}|`)(outlast (?:serve|worker|db|keys) [^`\n#]+)", re.MULTILINE)
SETTINGS = {f"OUTLAST_{name}".upper() for name in Settings.model_fields}


def commands() -> list[tuple[str, str]]:
    return [(each.name, found.strip()) for each in FILES for found in COMMAND.findall(each.read_text())]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_is_a_setting(path: Path) -> None:
    """I5: a name that nothing reads would be worse than none."""
    assert set(VARIABLE.findall(path.read_text())) <= SETTINGS


@pytest.mark.parametrize(("name", "line"), commands())
def test_every_command_is_one_that_the_program_takes(name: str, line: str) -> None:
    """I5: parsed as a shell and the program would, and not run."""
    words = shlex.split(line)[1:]
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(name, words, resilient_parsing=False)


def test_the_guide_speaks_of_all_that_is_there_to_deploy() -> None:
    """I5: units, a compose file and alerts are named; so are pooler, backups, upgrade and rollback."""
    guide = GUIDE.read_text()
    assert [each.name for each in (ROOT / "deploy").iterdir() if each.name not in guide] == []
    for word in ("PgBouncer", "Backups", "Upgrade", "Roll back", "OUTLAST_DIRECT_DATABASE", "max_connections"):
        assert word in guide


def test_the_guides_connections_are_those_that_are_calculated() -> None:
    """I5: the budget in the guide and the one on the page of calculations are the same."""
    pool = Settings.model_fields["database_connections"].default
    thirty = SETUPS[-1]
    many, few = (thirty.servers * (size + 1) + thirty.workers * (size + 4) for size in (pool, 4))
    assert f"{thirty.servers} x {pool + 1} + {thirty.workers} x {pool + 4} = {many:,}" in GUIDE.read_text()
    assert f"| 30 machines | {many:,} | {few:,} | {thirty.servers + 4 * thirty.workers:,} |" in scale_page()


def test_the_calculations_begin_with_what_was_measured() -> None:
    """I5: every cost is a number of a benchmark, and none is free."""
    found = costs()
    assert min(found.worker, found.api, found.postgres, found.database_bytes, found.wal_bytes, found.events) > 0
    workers = [each.workers / found.worker for each in SETUPS]
    assert all(f"| {rate:,.0f} |" in scale_page() for rate in workers)
