"""The `outlast` command: each verb is a module of its own, and this is the list of them."""

from typing import Annotated

import typer

from outlast import __version__
from outlast.cli.chat import chat
from outlast.cli.demo import demo
from outlast.cli.serve import serve

app = typer.Typer(
    name="outlast",
    help="A runtime for AI agents whose work takes longer than a request.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"outlast {__version__}")
        raise typer.Exit


@app.callback()
def outlast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """A runtime for AI agents whose work takes longer than a request."""


app.command()(chat)
app.command()(demo)
app.command()(serve)


def main() -> None:
    app()
