"""Which server a verb asks, and the options that all of them have."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.server_file import ENDING, ServerFile, ServerPlace
from outlast.errors import Unreachable

Url = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="OUTLAST_URL", metavar="URL", help="The server; else the one that was started in this folder."
    ),
]
Token = Annotated[str | None, typer.Option("--token", envvar="OUTLAST_TOKEN", metavar="KEY", help="A key for it.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON on stdout.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Wait no longer; the work goes on.")
]


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    token: str | None


def find(url: str | None, token: str | None) -> Target:
    """What was given, or what a server that was started in this folder has left; of that one, the address is enough."""
    if url is not None:
        known = [place.token for _, place in _places(Path.cwd()) if place.url == url.rstrip("/")]
        return Target(url, token or (known[0] if known else None))
    place = _here(Path.cwd())
    return Target(place.url, token or place.token)


def has_several_servers(folder: Path) -> bool:
    """Whether several servers run there: a verb then needs --url."""
    return len(_running(_places(folder))) > 1


def _places(folder: Path) -> list[tuple[Path, ServerPlace]]:
    return [(path, place) for path in sorted(folder.glob(f"*{ENDING}")) if (place := ServerFile(path).read())]


def _running(found: Sequence[tuple[Path, ServerPlace]]) -> list[tuple[Path, ServerPlace]]:
    return [(path, place) for path, place in found if _is_alive(place.pid)]


def _here(folder: Path) -> ServerPlace:
    found = _places(folder)
    running = _running(found)
    if len(running) > 1:
        names = ", ".join(f"{place.url} ({path.name})" for path, place in running)
        raise Unreachable(f"Several servers run in this folder: {names}. Choose one with --url.")
    if not found:
        raise Unreachable(
            "No server is known here. Start one in this folder with `outlast serve app.py`, or say where it is: "
            "--url and --token, or OUTLAST_URL and OUTLAST_TOKEN."
        )
    return (running or found)[-1][1]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
