"""The package as a user installs it: the built wheel in a clean environment with the packages that it asks for.

Those packages are linked from the environment of the tests, at their pinned versions: nothing is downloaded.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel and `packages`, and nothing else."""

    folder: Path
    packages: frozenset[str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.folder / "bin" / "outlast"

    def run(self, *arguments: str | Path, cwd: Path, code: int = 0, **environment: str) -> str:
        """What a program in it writes to stdout; with another exit code, what it complains of."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env={**_clean_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=150,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stderr if code else done.stdout


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def requirements(wheel: Path, extra: str = "") -> list[Requirement]:
    """What the wheel asks for without extras, or what an extra adds."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    found = map(Requirement, metadata.get_all("Requires-Dist", ()))
    return [
        each
        for each in found
        if (each.marker is None or each.marker.evaluate({"extra": extra}))
        and ("extra" in str(each.marker)) == bool(extra)
    ]


def with_all_they_need(wanted: Iterable[Requirement]) -> Mapping[str, Distribution]:
    """The packages that pip would install for these, by name, as they are in the environment of the tests."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    open_ = [(each.name, extra) for each in wanted for extra in ("", *each.extras)]
    while open_:
        name, extra = open_.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found[name] = distribution(name)
        for each in map(Requirement, found[name].requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                open_ += [(each.name, inner) for inner in ("", *each.extras)]
    return found


def install(folder: Path, wheel: Path, wanted: Iterable[Requirement]) -> Installed:
    """A new environment: the wheel without its dependencies, and these with theirs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = with_all_they_need(wanted)
    [target] = folder.glob("lib/python*/site-packages")
    for each in packages.values():
        _link(each, target)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    return Installed(folder, frozenset(packages))


def megabytes(packages: Iterable[Distribution]) -> float:
    """On disk, with the compiled files that pip makes."""
    return sum(path.stat().st_size for each in packages for path in _files(each)) / 1e6


def _files(package: Distribution) -> list[Path]:
    return [Path(str(package.locate_file(each))) for each in package.files or () if ".." not in each.parts]


def _link(package: Distribution, target: Path) -> None:
    source = Path(str(package.locate_file("")))
    for path in _files(package):
        link = target / path.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not link.exists():
            link.symlink_to(path)


def _clean_environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("OUTLAST_", "PYTHON", "VIRTUAL_ENV"))
    }
