"""`outlast demo`: a server with an agent to try, or a play about one that is killed."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    play: Annotated[bool, typer.Option("--play", help="A play in the terminal instead: an agent survives kill -9.")] = (
        False
    ),
    fast: Annotated[bool, typer.Option("--fast", help="With --play: do not wait for the reader.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8000,
    database: Annotated[Path, typer.Option("--database", "-d", help="Where the demo keeps everything.")] = Path(
        "demo.db"
    ),
) -> None:
    """Start a server with a demo agent, and say what to type. It needs no API key.

    Kill it, start it again: what was running goes on. Delete demo.db* when you have seen enough.
    """
    if play:
        from outlast.cli.demo.play import show

        show(is_fast=fast)
        return
    from outlast.cli.demo.server import make_app, what_to_type
    from outlast.cli.server.process import run
    from outlast.cli.terminal.console import console

    app = make_app(database)
    run(app, host="127.0.0.1", port=port, console=console(stderr=True), advice=lambda _url, _place: what_to_type())
