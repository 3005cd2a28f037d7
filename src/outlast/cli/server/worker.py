"""`outlast worker`: a process that runs what servers accept."""

from typing import Annotated

import typer

from outlast.cli.server.memory import collection_paused


def worker(
    app: Annotated[str, typer.Argument(help="The agent: app.py, app.py:name, package.module or package.module:name.")],
    database: Annotated[
        str | None, typer.Option("--database", "-d", help="A postgresql:// URL, if the file has only an Agent.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=65_535, help="Give numbers to Prometheus here. It needs no key."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", help="The address for that; 127.0.0.1 is seen on this machine only.")
    ] = "127.0.0.1",
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", hidden=True, help="Exit when standard input ends.")
    ] = False,
) -> None:
    """Run the work of an agent that servers on the same PostgreSQL accept. Start as many as you like.

    SIGTERM lets turns reach a boundary and hands them over to the other workers.
    """
    with collection_paused():
        from outlast.cli.server.worker_process import run

    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    run(app, database=database, metrics=metrics, exit_with_parent=exit_with_parent)
