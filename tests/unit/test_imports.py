"""Imports inside the package point inward: a layer knows itself and the layers before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "outlast"

LAYERS = (
    {"errors", "extras", "ids", "clock", "settings", "trace", "paging", "variables"},
    {"events", "tools", "wire"},
    {"store"},
    {"calls", "owners"},
    {"tasks", "sessions", "schedules"},
    {"engines"},
    {"runtime"},
    {"protocols"},
    {"api"},
    {"client"},
    {"cli"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# These may import anything; only what wires the parts together, and what lies outside it, may import them.
FREE = {"observe", "testing", "toolkit"}

# A client runs where no server does, and starts fast: it takes along only what is light to import.
LIGHT = {"client", "errors", "ids", "clock", "paging", "events", "wire"}

# The package itself offers the public names, so to import from it is to import the runtime.
PUBLIC = ""
ENTRY_POINTS = {PUBLIC, "__main__"}


def unit_of(path: Path, package: Path) -> str:
    """The first name below the package: `tasks` for tasks/states.py, `errors` for errors.py."""
    first = path.relative_to(package).parts[0].removesuffix(".py")
    return PUBLIC if first == "__init__" else first


def imported_units(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and unit of each import from this package."""
    here = (package.name, *path.relative_to(package).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{module}.{alias.name}" for alias in node.names] if module == package.name else [module]
        else:
            continue
        for module in modules:
            top, _, rest = module.partition(".")
            if top == package.name:
                unit = rest.partition(".")[0]
                is_module = (package / unit).is_dir() or (package / f"{unit}.py").is_file()
                yield node.lineno, unit if is_module else PUBLIC


def may_import(importer: str, imported: str) -> bool:
    if importer in FREE | ENTRY_POINTS or importer == imported:
        return True
    if importer == "client":
        return imported in LIGHT
    if imported in FREE:
        return RANK[importer] >= RANK["runtime"]
    return RANK[imported or "runtime"] <= RANK[importer]


def outward_imports(package: Path) -> list[str]:
    return [
        f"{path.relative_to(package)}:{line} imports {imported or package.name}"
        for path in sorted(package.rglob("*.py"))
        for line, imported in imported_units(path, package)
        if not may_import(unit_of(path, package), imported)
    ]


def test_every_module_has_a_layer() -> None:
    units = {unit_of(path, PACKAGE) for path in PACKAGE.rglob("*.py")}
    assert units <= set(RANK) | FREE | ENTRY_POINTS, "give the new module a place in LAYERS"


def test_imports_point_inward() -> None:
    assert outward_imports(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "statement", "seen"),
    [
        ("errors.py", "from outlast.store import database", "store"),
        ("errors.py", "import outlast.store.database", "store"),
        ("errors.py", "from outlast import store", "store"),
        ("tools/hints.py", "from ..store import database", "store"),
        ("tools/hints.py", "from .. import store", "store"),
        ("store/database.py", "from outlast import Outlast", "outlast"),
        ("engines/sweep.py", "from outlast.testing import agent", "testing"),
        ("tools/hints.py", "def late():\n    import outlast.runtime", "runtime"),
        ("client/session.py", "from outlast.store import sessions", "store"),
        ("protocols/ai_sdk.py", "from outlast.api import sse", "api"),
    ],
)
def test_an_outward_import_is_seen(tmp_path: Path, path: str, statement: str, seen: str) -> None:
    package = tmp_path / "outlast"
    for folder in ("store", "tools", "engines", "testing", "client", "protocols", "api"):
        (package / folder).mkdir(parents=True)
    (package / "runtime.py").touch()
    (package / path).write_text(statement)
    assert [found.rpartition(" ")[2] for found in outward_imports(package)] == [seen]


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("store/database.py", "from outlast.errors import Problem"),
        ("store/database.py", "from ..errors import Problem"),
        ("store/database.py", "from .tables import messages"),
        ("store/database.py", "import sqlalchemy"),
        ("runtime.py", "from outlast.store import database"),
        ("runtime.py", "from outlast import observe"),
        ("observe/metrics.py", "from outlast.runtime import Outlast"),
        ("client/session.py", "from outlast.errors import NotFound"),
    ],
)
def test_an_inward_import_is_fine(tmp_path: Path, path: str, statement: str) -> None:
    package = tmp_path / "outlast"
    for folder in ("store", "observe", "client"):
        (package / folder).mkdir(parents=True)
    for module in ("runtime.py", "errors.py"):
        (package / module).touch()
    (package / path).write_text(statement)
    assert outward_imports(package) == []
