"""`tests/fundamentals` is the manual: short enough to be read, and written with public names only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import outlast
import outlast.testing

CHAPTERS = sorted((Path(__file__).parents[1] / "fundamentals").glob("test_*.py"))
PUBLIC = {"outlast": outlast.__all__, "outlast.testing": outlast.testing.__all__}


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (("." * node.level + (node.module or ""), each.name) for each in node.names)


def is_public(module: str, name: str) -> bool:
    """A module of ours, or a name in one."""
    if not module.startswith(("outlast", "tests", ".")):
        return True
    return module in PUBLIC and (not name or name in PUBLIC[module])


def test_it_has_at_most_ten_chapters() -> None:
    assert 1 <= len(CHAPTERS) <= 10


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_chapter_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_chapter_uses_public_names_only(path: Path) -> None:
    """What is shown there may be copied."""
    assert [each for each in imported(path) if not is_public(*each)] == []


@pytest.mark.parametrize(
    ("line", "is_allowed"),
    [
        ("from outlast import Outlast", True),
        ("import outlast", True),
        ("from outlast.testing import call", True),
        ("from pydantic_ai import Agent", True),
        ("from outlast import runtime", False),
        ("from outlast.errors import NotFound", False),
        ("import outlast.store", False),
        ("from tests.support.turns.runtime import Runtime", False),
        ("from .conftest import Start", False),
    ],
)
def test_other_names_are_noticed(line: str, is_allowed: bool, tmp_path: Path) -> None:
    path = tmp_path / "chapter.py"
    path.write_text(line, encoding="utf-8")
    assert all(is_public(*each) for each in imported(path)) is is_allowed
