"""`outlast chat`: what the command takes. What it does is imported when it is asked for: other verbs start fast."""

from typing import Annotated

import typer

from outlast.cli.asking import say
from outlast.cli.server.memory import collection_paused
from outlast.cli.target import Token


def chat(
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="APP", help="A file or module with an Outlast or an Agent: app.py, app.py:name. [default: a server]"
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", "-d", help="Where a plain agent's work is kept. [default: outlast.db]"),
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Go on with this session.")] = None,
    continue_: Annotated[bool, typer.Option("--continue", help="Go on with the latest session.")] = False,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="Send this, print the answer, and leave.")] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Talk with the agent of this server. [env: OUTLAST_URL]")
    ] = None,
    token: Token = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With this one of several agents; --continue goes on with its latest."),
    ] = None,
) -> None:
    """Talk with an agent: your own, or that of a server. Everything is kept: leave, crash, and go on with --continue.

    Without an app it is the server that was started in this folder, or the one of --url; a database that a server
    holds is talked with over that server. Ctrl-C stops the agent's turn; at the prompt it leaves. /help lists what
    else can be typed. Input may also be a pipe, a message a line, each answered before the next: answers go to
    stdout, everything else to stderr, also what the app, its tools and programs they start print. With --message or a
    pipe the exit code is 0 when the last turn completed, 1 when it failed, 130 when Ctrl-C stopped it; 2 when the
    chat could not begin.
    """
    if app is not None and url is not None:
        raise typer.BadParameter("Give either an app or --url.")
    if session is not None and continue_:
        raise typer.BadParameter("Give either --session or --continue.")
    if session is not None and agent is not None:
        raise typer.BadParameter("Give either --session, which has its agent, or --agent.")
    # At once: what comes now takes a while, and what is typed meanwhile is kept.
    say(f"Loading {app} …" if app is not None else "Connecting …")
    with collection_paused():
        from outlast.cli.chat.run import ChatOptions, run

    run(ChatOptions(app, database, session, continue_, message, url, token, agent))
