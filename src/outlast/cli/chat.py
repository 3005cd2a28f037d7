"""`outlast chat`: what the command takes. What it does is imported when it is asked for: other verbs start fast."""

from typing import Annotated

import typer

from outlast.cli.memory import loading


def chat(
    app: Annotated[str, typer.Argument(help="A file or module with an Outlast or an Agent: app.py, app.py:name.")],
    database: Annotated[
        str | None, typer.Option(help="Where a plain agent's work is kept. [default: outlast.db]")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Go on with this session.")] = None,
    continue_: Annotated[bool, typer.Option("--continue", help="Go on with the latest session.")] = False,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="Send this, print the answer, and leave.")] = None,
) -> None:
    """Talk with an agent. Everything is kept: leave, crash or be killed, and go on with --continue.

    Ctrl-C stops the agent's turn; at the prompt it leaves. /help lists what else can be typed. Input may also be
    a pipe, a message a line. With --message or a pipe the exit code is 0 when the last turn completed, 1 when it
    failed, 130 when Ctrl-C stopped it; 2 when the chat could not begin.
    """
    with loading():
        from outlast.cli.chat_run import Wanted, run

    run(Wanted(app, database, session, continue_, message))
