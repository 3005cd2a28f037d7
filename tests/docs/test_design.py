"""What the pages say of the code is there: modules and functions by name, the picture, the records, the way to add."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs import design_picture

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlast"
DESIGN = ROOT / "docs" / "explanation" / "design.md"
DECISIONS = ROOT / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("0*.md"))
AGENTS = ROOT / "AGENTS.md"
SPAN = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[a-z_]+(?:\.[A-Za-z_]+)+")
OF_A_CLASS = re.compile(r"[A-Z][a-z]\w*\.\w+")
FOLDERS = {each.name for each in PACKAGE.iterdir() if each.is_dir()}


@cache
def names_in(module: Path) -> frozenset[str]:
    """Everything that a module defines: `name`, `Class` and `Class.name`."""
    found: set[str] = set()
    for each in ast.parse(module.read_text(encoding="utf-8")).body:
        found |= _defined(each)
        if isinstance(each, ast.ClassDef):
            found |= {f"{each.name}.{name}" for inner in each.body for name in _defined(inner)}
    return frozenset(found)


def _defined(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {each.id for each in targets if isinstance(each, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def is_there(name: str) -> bool:
    """`folder.module.name` or `folder.module.Class.name` of the package."""
    parts = name.split(".")
    for at in range(len(parts), 0, -1):
        module = PACKAGE.joinpath(*parts[:at]).with_suffix(".py")
        if module.is_file():
            return at == len(parts) or ".".join(parts[at:]) in names_in(module)
    return PACKAGE.joinpath(*parts).is_dir()


@pytest.fixture(scope="module")
def everything() -> frozenset[str]:
    return frozenset(name for module in PACKAGE.rglob("*.py") for name in names_in(module))


def names_of(page: Path) -> list[str]:
    spans = SPAN.findall(page.read_text(encoding="utf-8"))
    return [each for each in spans if NAME.fullmatch(each) and each.partition(".")[0] in FOLDERS]


@pytest.mark.parametrize("page", [DESIGN, *RECORDS], ids=lambda page: page.name)
def test_every_name_that_a_page_tells_of_is_in_the_code(page: Path, everything: frozenset[str]) -> None:
    """K5: a story about functions that are gone would send a reader astray."""
    assert [each for each in names_of(page) if not is_there(each)] == []
    classes = [each for each in SPAN.findall(page.read_text(encoding="utf-8")) if OF_A_CLASS.fullmatch(each)]
    assert [each for each in classes if each not in everything] == []


def test_the_stories_name_the_code() -> None:
    """A page without names would pass the test above."""
    assert len(set(names_of(DESIGN))) > 50


def ways_to_add() -> str:
    return AGENTS.read_text(encoding="utf-8").partition("## To add")[2].partition("\n## ")[0]


def paths_in(text: str) -> list[str]:
    return [each for each in SPAN.findall(text) if re.fullmatch(r"[\w/.-]+(/|\.py)", each)]


@pytest.mark.parametrize("page", [DESIGN, *RECORDS], ids=lambda page: page.name)
def test_every_path_that_a_page_tells_of_is_there(page: Path) -> None:
    found = paths_in(page.read_text(encoding="utf-8"))
    assert [each for each in found if not ((PACKAGE / each).exists() or (ROOT / each).exists())] == []


def test_where_to_add_something_is_there() -> None:
    found = set(paths_in(ways_to_add()))
    assert len(found) > 15
    assert [each for each in sorted(found) if not (PACKAGE / each).exists()] == []


def test_the_picture_is_the_one_that_is_drawn() -> None:
    """Run `python -m docs.design_picture` when this fails."""
    assert design_picture.PICTURE.read_text(encoding="utf-8") == design_picture.drawn()


def test_the_picture_names_folders_of_the_package_and_modules_of_transitions() -> None:
    boxes = [each for each in design_picture.BOXES if each.kind != "other"]
    folders = {name.strip("/") for each in boxes for name in each.name.split(" · ")}
    assert folders <= FOLDERS
    (moves,) = [each for each in boxes if each.name == "transitions/"]
    named = [line.partition(":")[0].split(", ") for line in moves.lines if ":" in line or line.startswith("creation")]
    modules = {each.stem for each in (PACKAGE / "transitions").rglob("*.py")}
    assert [each for line in named for each in line if each not in modules] == []


def test_the_picture_has_a_light_and_a_dark_side() -> None:
    drawn = design_picture.drawn()
    light, _, dark = drawn.partition("prefers-color-scheme: dark")
    assert (
        set(re.findall(r"(--\w+):", light))
        == set(re.findall(r"(--\w+):", dark))
        == set(re.findall(r"var\((--\w+)\)", drawn))
    )


def test_the_index_lists_every_record_once_and_in_order() -> None:
    linked = re.findall(r"^\d+\. \[.+\]\((.+)\)$", (DECISIONS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert linked == [each.name for each in RECORDS]


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.name)
def test_a_record_has_its_four_parts_and_fits_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Numbers", "Consequences"]
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert len(text.splitlines()) < 60


def test_readme_and_agents_lead_to_the_design() -> None:
    for page in (ROOT / "README.md", AGENTS):
        text = page.read_text(encoding="utf-8")
        assert "(docs/explanation/design.md)" in text
        assert "(docs/decisions/README.md)" in text


def test_agents_tells_ten_ways_to_add_something_and_each_verb_once() -> None:
    assert len(re.findall(r"^- \*\*", ways_to_add(), re.MULTILINE)) == 10
    table = AGENTS.read_text(encoding="utf-8").partition("## Verbs")[2].partition("\n## ")[0]
    verbs = [each for row in re.findall(r"^\| ([a-z ·]+) \|", table, re.MULTILINE) for each in row.split(" · ")]
    assert len(verbs) > 20
    assert len(verbs) == len(set(verbs))
