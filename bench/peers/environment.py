"""The virtual environments of the peers: made on first use, kept in a cache folder, never part of this project."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CACHE = "OUTLAST_BENCH_CACHE"
"""Names the folder; without it, one below the user's own cache folder."""
_SECONDS = 900


class LeftOut(Exception):
    """A peer that cannot be measured here, and why."""


def binaries(name: str, packages: Sequence[str]) -> Path:
    """The folder with the commands of an environment that has these packages. Raises `LeftOut`."""
    folder = Path(os.environ.get(CACHE, Path.home() / ".cache" / "outlast-bench")) / name
    stamp = folder / "installed.txt"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    print(f"Installing {name} into {folder}", file=sys.stderr, flush=True)
    _run(name, sys.executable, "-m", "venv", folder)
    _run(name, folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)
    stamp.write_text(wanted)
    return folder / "bin"


def _run(name: str, *command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.CalledProcessError as exc:
        last = exc.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise LeftOut(f"{name} could not be installed: {last[0]}") from exc
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LeftOut(f"{name} could not be installed: {exc}") from exc
