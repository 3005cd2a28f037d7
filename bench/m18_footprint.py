"""M18: what `pip install outlast` puts on a disk, and what a server made of it takes: time to be ready, memory.

Installs the built wheel and what it asks for with pip in a new environment, so it needs a package index.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.measure import Report, Target, quantile
from tests.support.processes.installed import build_wheel
from tests.support.processes.serving_process import ServingProcess

ID = "M18"
_COUNT = 5
_APP = """
from pydantic_ai import Agent
from outlast.testing import ScriptedModel
agent = Agent(ScriptedModel(lambda _: "Hello."))
"""
_BROUGHT_BY_VENV = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


@dataclass(frozen=True)
class Size:
    packages: int
    megabytes: float


@dataclass(frozen=True)
class Start:
    seconds: float
    processor_seconds: float
    megabytes: float


def run() -> Report:
    report = Report(
        ID, "footprint of an installation and its server", "SQLite file, new each time", columns=("what", "found", "")
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        sizes = {extra: _installed(folder / (extra or "base"), wheel, extra) for extra in ("", "postgres", "s3", "mcp")}
        compiled = [_start(folder / "base", folder / f"compiled-{each}") for each in range(_COUNT)]
        for each in _site(folder / "base").rglob("__pycache__"):
            shutil.rmtree(each)
        plain = [
            _start(folder / "base", folder / f"plain-{each}", PYTHONDONTWRITEBYTECODE="1") for each in range(_COUNT)
        ]
    for extra, size in sizes.items():
        report.rows.append(
            (f"outlast with {extra}" if extra else "outlast", f"{size.packages} packages", _mb(size.megabytes))
        )
        report.numbers |= {f"{extra or 'base'}_packages": size.packages, f"{extra or 'base'}_mb": size.megabytes}
    for kind, starts in (("compiled", compiled), ("plain", plain)):
        ready = quantile([each.seconds for each in starts], 0.5)
        cpu = quantile([each.processor_seconds for each in starts], 0.5)
        memory = quantile([each.megabytes for each in starts], 0.5)
        words = "with .pyc files" if kind == "compiled" else "without .pyc files"
        report.rows.append((f"ready {words}", f"{ready:.2f} s ({cpu:.2f} s of a core)", _mb(memory)))
        report.numbers |= {f"{kind}_ready_s": ready, f"{kind}_cpu_s": cpu, f"{kind}_rss_mb": memory}
    report.targets = [
        Target("outlast without extras, MB", sizes[""].megabytes, 150, is_most=True),
        Target("ready without .pyc files, p50 s", report.numbers["plain_ready_s"], 2.0, is_most=True),
    ]
    return report


def _installed(environment: Path, wheel: Path, extra: str) -> Size:
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", wanted], check=True, stderr=subprocess.DEVNULL)
    own = [each for each in _site(environment).iterdir() if not each.name.startswith(_BROUGHT_BY_VENV)]
    files = [path for each in own for path in (each.rglob("*") if each.is_dir() else (each,)) if path.is_file()]
    return Size(sum(each.suffix == ".dist-info" for each in own), sum(each.stat().st_size for each in files) / 1e6)


def _site(environment: Path) -> Path:
    [found] = environment.glob("lib/python*/site-packages")
    return found


def _start(environment: Path, folder: Path, **variables: str) -> Start:
    folder.mkdir()
    (folder / "app.py").write_text(_APP)
    began = time.perf_counter()
    with ServingProcess(folder, environment=variables, command=environment / "bin" / "outlast") as server:
        ready = time.perf_counter() - began
        process = psutil.Process(server.process.pid)
        spent = process.cpu_times()
        return Start(ready, spent.user + spent.system, process.memory_info().rss / 1e6)


def _mb(megabytes: float) -> str:
    return f"{megabytes:.0f} MB"
