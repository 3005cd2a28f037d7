"""Answers on stdout: tables for people, JSON for programs."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from outlast.cli.terminal import words
from outlast.observe.plain import plain, plain_json, plain_line

_GAP = 2
_LEAST = 10
"""How narrow the elastic column may become."""


def print_json(value: Any) -> None:
    sys.stdout.write(plain_json(to_json(value, indent=2).decode()) + "\n")


def print_json_line(value: Any) -> None:
    """One of many: a line each, as they come."""
    sys.stdout.write(plain_json(to_json(value).decode()) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, elastic: str | None = None) -> None:
    """On a terminal the `elastic` column gives way, so that ids stay whole; elsewhere nothing is cut."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from outlast.cli.terminal.console import console as make_console

    console = make_console()
    rows = [[plain_line(cell) for cell in row] for row in rows]
    widths = {name: max(map(cell_len, cells)) for name, *cells in _columns(columns, rows)}
    if elastic is not None and console.is_terminal:
        rest = sum(width + _GAP for name, width in widths.items() if name != elastic)
        widths[elastic] = max(_LEAST, min(widths[elastic], console.width - rest - _GAP))
    console.width = sum(width + _GAP for width in widths.values())
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for name, width in widths.items():
        table.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Each column's name, and then its cells with the name as the first of them."""
    for at, name in enumerate(columns):
        yield [name, name, *(row[at] for row in rows)]


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line, further lines of a value below it; what is not there is left out."""
    shown = [(name, str(value)) for name, value in facts if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{name:{width}}  " + plain(value).replace("\n", "\n" + " " * (width + 2)))


def ago(at: datetime) -> str:
    return words.duration(datetime.now(UTC) - at)
