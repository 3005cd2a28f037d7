"""The `outlast` command: each verb stands in a module of its own noun, and this is the list of them.

Verbs that ask a server import no runtime, and those that run one import it when they are called: a verb that lists
tasks should not take as long to start as an agent.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from outlast import __version__
from outlast.cli.chat.verb import chat
from outlast.cli.demo.verb import demo
from outlast.cli.server.serve import serve
from outlast.cli.server.worker import worker
from outlast.cli.terminal.stream import guard
from outlast.cli.verbs import connections, database, files, keys, schedules, sessions, webhooks
from outlast.cli.verbs.about import me, open_, pause, resume, usage
from outlast.cli.verbs.doctor import doctor
from outlast.cli.verbs.requests import approvals, approve, ask_again, refuse, reply
from outlast.cli.verbs.spawn import spawn
from outlast.cli.verbs.talk import attach, send, stop
from outlast.cli.verbs.tasks import cancel, complete, logs, ps, settle, wait

app = typer.Typer(
    name="outlast",
    help="A runtime for AI agents whose work takes longer than a request.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # what stands in brackets is text, and lines are joined to paragraphs
)

HERE = "Run agents"
SERVER = "Ask a server"


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


for verb in (serve, worker, chat, demo):
    app.command(rich_help_panel=HERE)(verb)
app.add_typer(database.app, name="db", rich_help_panel=HERE)
for verb in (
    send,
    attach,
    stop,
    spawn,
    ps,
    logs,
    wait,
    cancel,
    complete,
    settle,
    approvals,
    approve,
    ask_again,
    refuse,
    reply,
    me,
    usage,
    doctor,
    pause,
    resume,
):
    app.command(rich_help_panel=SERVER)(verb)
app.command("open", rich_help_panel=SERVER)(open_)
app.add_typer(sessions.app, name="sessions", rich_help_panel=SERVER)
app.add_typer(schedules.app, name="schedules", rich_help_panel=SERVER)
app.add_typer(connections.app, name="connections", rich_help_panel=SERVER)
app.add_typer(webhooks.app, name="webhooks", rich_help_panel=SERVER)
app.add_typer(files.app, name="files", rich_help_panel=SERVER)
app.add_typer(keys.app, name="keys", rich_help_panel=SERVER)


def main() -> None:
    _guard(app)
    app()


def _guard(commands: typer.Typer) -> None:
    """Before a verb does anything; what typer itself says, such as its help, is ours and keeps its colours."""
    for each in commands.registered_commands:
        if each.callback is not None:
            each.callback = _guarded(each.callback)
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _guard(group.typer_instance)


def _guarded(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def run(*args: Any, **kwargs: Any) -> Any:
        guard()
        return verb(*args, **kwargs)

    return run
