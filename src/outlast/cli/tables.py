"""Answers on stdout: tables for people, JSON for programs."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from outlast.cli import words

_WIDE = 10_000


def print_json(value: Any) -> None:
    sys.stdout.write(to_json(value, indent=2).decode() + "\n")


def print_json_line(value: Any) -> None:
    """One of many: a line each, as they come."""
    sys.stdout.write(to_json(value).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, elastic: str | None = None) -> None:
    """On a terminal as wide as that, where the `elastic` column gives way; elsewhere nothing is cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(
            name, no_wrap=True, overflow="ellipsis" if name == elastic else "fold", min_width=_least(name, elastic)
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line; what is not there is left out."""
    shown = [(name, str(value)) for name, value in facts if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{name:{width}}  {value}")


def ago(at: datetime) -> str:
    return words.duration(datetime.now(UTC) - at)


def _least(name: str, elastic: str | None) -> int | None:
    return 10 if name == elastic else None
