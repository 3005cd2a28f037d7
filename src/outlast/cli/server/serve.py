"""`outlast serve`: an agent behind HTTP, for this machine unless told otherwise."""

from typing import Annotated

import typer

from outlast.cli.server.memory import collection_paused


def serve(
    app: Annotated[str, typer.Argument(help="The agent: app.py, app.py:name, package.module or package.module:name.")],
    host: Annotated[str, typer.Option(help="The address to listen on; this machine only unless you say more.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8000,
    database: Annotated[
        str | None, typer.Option("--database", "-d", help="Where to keep everything, if the file has only an Agent.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Run the work in so many processes beside this one (PostgreSQL).")
    ] = None,
    run_work: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Whether this process runs work, or only accepts it.")
    ] = True,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes; turns go on.")] = (
        False
    ),
) -> None:
    """Serve an agent over HTTP: sessions, streams, background tasks."""
    with collection_paused():
        from outlast.cli.server.process import Roles, serve_app
        from outlast.cli.server.reload import serve_with_reload

    start = serve_with_reload if reload else serve_app
    start(app, host=host, port=port, database=database, roles=Roles(run_work and not workers, workers or 0))
