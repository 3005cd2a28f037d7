"""What a server says one can type next: commands that work where they are read."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from outlast.cli import target
from outlast.cli.server_file import ServerFile
from outlast.cli.terminal.command import typed


def first_steps(url: str, place: ServerFile, *, worker_of: str | None = None) -> Sequence[str]:
    """`worker_of`: the app, if the server runs no work of it itself."""
    command = typed()
    folder = place.path.parent.resolve()
    go = "" if folder == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    which = f" --url {url}" if target.has_several_servers(folder) else ""
    send, ps = f"{go}{command} send 'hello' --wait{which}", f"{go}{command} ps{which}"
    lines = [f"  try: {send} · {ps} · Ctrl-C stops it, and nothing is lost"]
    if worker_of is not None:
        lines.insert(
            0, f"  it runs no work itself: {command} worker {shlex.quote(worker_of)} does, on the same database"
        )
    return lines
