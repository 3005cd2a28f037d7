"""Verbs that talk with a session: send, attach, stop."""

import asyncio
import sys
from collections.abc import Awaitable, Sequence
from typing import Annotated, Literal

import typer

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Timeout, Token, Url
from outlast.cli.terminal import words
from outlast.cli.terminal.tables import print_json
from outlast.cli.verbs.tasks import end_line
from outlast.cli.waiting import Waiting, reason
from outlast.client import Client
from outlast.client.session import Session
from outlast.client.turn import Sent
from outlast.events.outcome import Outcome
from outlast.events.shown import unsaid
from outlast.wire.task import Task

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")]


def send(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.")],
    session: Annotated[str | None, typer.Option(metavar="ID", help="To this session.")] = None,
    new: Annotated[bool, typer.Option("--new", help="To a new session.")] = False,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="To the latest session of this agent, or a new one of it.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Show the answer as it is said, and what background work makes of it.")
    ] = False,
    turn: Annotated[bool, typer.Option("--turn", help="Show the answer, and wait for nothing after its turn.")] = False,
    when_busy: Annotated[
        Literal["steer", "queue", "interrupt", "reject"],
        typer.Option(help="If a turn runs: steer it, wait for its end, stop it first, or refuse."),
    ] = "steer",
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Send a message: to the session that changed last, unless you name one or ask for a new one.

    With --wait answers go to stdout and everything else to stderr, until nothing runs and nothing is open that will
    wake the session; the end of its last turn gives the exit code. With --turn it is the end of the one turn.
    """
    if session is not None and new:
        raise typer.BadParameter("Give either --session or --new.")
    if session is not None and agent is not None:
        raise typer.BadParameter("Give either --session, which has its agent, or --agent.")
    message = sys.stdin.read() if text == "-" else text
    waiting: Waiting | None = None
    sent_to = ""

    async def work(client: Client) -> Exit | None:
        nonlocal waiting, sent_to
        to = await _session(client, session, agent, is_new=new)
        sent = await to.send(message, when_busy=when_busy)
        waiting, sent_to = _waiting(client, to), to.id
        if not wait and not turn:
            await _say_sent(client, to, sent, as_json=as_json)
            return None
        from outlast.cli.turn_view import show_answer

        say(f"Session {to.id}")
        return await _within(timeout, waiting, to.id, show_answer(to, sent, is_turn_only=turn, as_json=as_json))

    def left() -> str:
        if waiting is None:
            return "Left before the message was known to be accepted."
        return f"Left. The message is kept and its turn {waiting.state}: outlast attach {sent_to}"

    ask(url, token, work, on_interrupt=left)


async def _session(client: Client, session_id: str | None, agent: str | None, *, is_new: bool) -> Session:
    if session_id is not None:
        return await client.sessions.get(session_id)
    latest = () if is_new else await client.sessions.list(limit=1, agent=agent)
    return latest[0] if latest else await client.sessions.create(agent=agent)


def _waiting(client: Client, session: Session) -> Waiting:
    async def why() -> str | None:
        # Of its own: whoever shows the session goes on from what was seen of it.
        return await reason(client, await client.sessions.get(session.id))

    return Waiting(why, say)


async def _say_sent(client: Client, session: Session, sent: Sent, *, as_json: bool) -> None:
    if as_json:
        told = {"session_id": session.id, "input_id": sent.input_id, "turn_id": sent.turn_id, "position": sent.place}
        print_json(told)
        return
    place = "" if sent.place is None else f"; it waits in place {sent.place}"
    why = await reason(client, await session.refresh())
    print(f"Sent{place}. Follow it with: outlast attach {session.id}" + ("" if why is None else f"\nIt waits: {why}"))


def attach(
    session: SessionArgument,
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Follow a session live until its turn ends; if none runs, show how the last one ended.

    Ctrl-C leaves; the turn goes on.
    """

    waiting: Waiting | None = None

    async def work(client: Client) -> Exit:
        nonlocal waiting
        found = await client.sessions.get(session)
        if found.turn_id is None:
            going_on = () if as_json else await client.tasks.list(session_id=found.id, state="open")
            return _show_last(await found.result(wait=0), going_on, as_json=as_json)
        from outlast.cli.turn_view import show_turn

        waiting = _waiting(client, found)
        return await _within(timeout, waiting, found.id, show_turn(found, found.turn_id, as_json=as_json))

    def left() -> str:
        return f"Left. The turn {'goes on' if waiting is None else waiting.state}: outlast attach {session}"

    ask(url, token, work, on_interrupt=left)


def _show_last(outcome: Outcome | None, going_on: Sequence[Task], *, as_json: bool) -> Exit:
    if as_json:
        print_json(outcome)
    elif outcome is None:
        say("The session had no turn yet.")
    else:
        names = ", ".join(f"{each.title} ({each.id})" for each in going_on)
        now = f"No turn runs; in the background: {names}." if names else "Nothing runs in it."
        say(f"{now} Its last turn {outcome.state if outcome.state != 'stopped' else 'was stopped'}:")
        for said in filter(None, (outcome.text, unsaid(outcome.output, [outcome.text]))):
            print(said)
        if outcome.error is not None:
            say(f"{outcome.error.get('message', '')} ({outcome.error.get('kind', 'failed')})")
    return Exit.OK if outcome is None or outcome.state == "completed" else Exit.FAILED


async def _within(timeout: float | None, waiting: Waiting, session_id: str, showing: Awaitable[Exit]) -> Exit:
    try:
        async with asyncio.timeout(timeout), waiting.watching():
            return await showing
    except TimeoutError:
        await waiting.look()
        say(f"The turn {waiting.state}: outlast attach {session_id}")
        return Exit.STILL_RUNNING


def stop(
    session: SessionArgument,
    cascade: Annotated[bool, typer.Option("--cascade", help="Also cancel its background tasks.")] = False,
    by: Annotated[str | None, typer.Option(help="Who stops it, beside the name of the key.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Stop a session's turn and hold it: nothing starts until a message, or `sessions resume`."""

    async def work(client: Client) -> None:
        found = await client.sessions.get(session)
        open_tasks = await client.tasks.list(session_id=found.id, state="open") if cascade else ()
        outcome = await found.stop(cascade=cascade, by=by)
        if as_json:
            print_json(outcome)
        else:
            await _say_stopped(await found.refresh(), outcome)
            for each in open_tasks:
                print(end_line(await client.tasks.get(each.id)))

    ask(url, token, work)


async def _say_stopped(session: Session, outcome: Outcome | None) -> None:
    if outcome is not None:
        print("Stopped. What was said so far is kept.")
    else:
        held = "; the session is held: nothing starts a turn until a message or `sessions resume`"
        print(f"No turn was running{held if session.state == 'held' else ''}.")
    for call in session.interrupted_calls:
        if outcome is not None and call.turn_id == outcome.turn_id:
            command = words.settle_command(call.call_id, session.id)
            print(f"{call.tool} (call {call.call_id}) was interrupted, {words.NOBODY_KNOWS}: {command}")
