"""A folder of the package is one idea: it has no more modules of its own than can be looked over."""

from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "outlast"
MOST = 16
AS_MANY_AS_THERE_ARE = ("store/repositories", "store/migrations/versions")
"""One module for each noun that is stored, and one for each change of the schema."""
FOLDERS = sorted(
    str(each.relative_to(PACKAGE))
    for each in (PACKAGE, *PACKAGE.rglob("*"))
    if each.is_dir() and any(each.glob("*.py"))
)


def modules(folder: str) -> list[str]:
    return sorted(each.stem for each in (PACKAGE / folder).glob("*.py") if each.name != "__init__.py")


@pytest.mark.parametrize("folder", [each for each in FOLDERS if each not in AS_MANY_AS_THERE_ARE])
def test_a_folder_is_one_idea(folder: str) -> None:
    """Past sixteen modules a second idea has moved in: give it a folder."""
    assert len(modules(folder)) <= MOST, modules(folder)


def test_the_exceptions_are_there() -> None:
    assert set(AS_MANY_AS_THERE_ARE) < set(FOLDERS)
