"""`outlast serve --reload`: a new server process after each change of a Python file."""

import logging
import shlex
import sys
from contextlib import closing
from pathlib import Path

from outlast.cli.server.listening import listen
from outlast.cli.server.process import Roles
from outlast.cli.terminal.console import console as make_console

_SHUTDOWN_SECONDS = 30
"""How long the old process may take to hand its turns over."""
_EXPECTED_MESSAGES = ("KeyboardInterrupt caught", "received signal", "process already dead")
"""What the library that watches files logs when it is told to stop, or when a broken app had ended before."""


def serve_with_reload(app: str, *, host: str, port: int, database: str | None, roles: Roles) -> None:
    """A new process after each change of a Python file, at the same address; the old one hands its turns over first."""
    from watchfiles import PythonFilter, run_process

    if port == 0:
        with closing(listen(host, 0, make_console(stderr=True))) as found:
            port = found.getsockname()[1]
    given = [f"--host={host}", f"--port={port}", *([] if database is None else [f"--database={database}"])]
    given += [f"--workers={roles.workers}"] if roles.workers else ["--worker" if roles.run_work else "--no-worker"]
    command = shlex.join([sys.executable, "-m", "outlast", "serve", app, *given])
    place = Path(app.partition(":")[0])
    folder = (place.parent if place.suffix == ".py" else Path()).resolve()
    watcher = logging.getLogger("watchfiles.main")
    watcher.addFilter(lambda record: not record.getMessage().startswith(_EXPECTED_MESSAGES))
    make_console(stderr=True).print(f"Watching {folder} for changes", soft_wrap=True)
    run_process(
        folder, target=command, target_type="command", watch_filter=PythonFilter(), sigint_timeout=_SHUTDOWN_SECONDS
    )
