"""`outlast sessions`: list, show, rename, archive, resume, retry, fork, export, import, delete."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import from_json, to_json

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal import words
from outlast.cli.terminal.tables import ago, print_facts, print_json, print_table
from outlast.cli.waiting import reason
from outlast.client import Client
from outlast.client.session import Session
from outlast.events.shown import unsaid
from outlast.observe.plain import plain_line
from outlast.wire.session import InterruptedCall
from outlast.wire.task import Task

app = typer.Typer(help="List and change sessions.", no_args_is_help=True)
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")]
_SHOWN_TASKS = 10


@app.command("list")
def list_(
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="In titles and messages.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Of this agent only.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="SESSION", help="The sub-sessions of this one.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived ones.")] = False,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Archived ones too.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many.")] = 50,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the one that changed last first."""

    async def work(client: Client) -> None:
        is_archived = None if all_ else archived
        found = await client.sessions.list(limit=limit, search=search, archived=is_archived, agent=agent, parent=parent)
        if as_json:
            print_json([each.seen for each in found])
        elif not found:
            say("No sessions.")
        else:
            rows = [(each.id, _state(each), _title(each), _marks(each), ago(each.updated_at)) for each in found]
            print_table(("SESSION", "STATE", "TITLE", "", "CHANGED"), rows, elastic="TITLE")

    ask(url, token, work)


def _state(session: Session) -> str:
    return session.state if session.no_worker_for is None else f"queued, no worker for {session.no_worker_for!r}"


def _title(session: Session) -> str:
    """What somebody called it; else, in quotation marks, how it begins."""
    said = session.title if session.title_from == "person" else f'"{session.preview}"' if session.preview else ""
    return words.shortened(said or "", 82)


def _marks(session: Session) -> str:
    marks = ("unread" if session.is_unread else "", "archived" if session.is_archived else "")
    return ", ".join(filter(None, marks))


@app.command()
def show(session: SessionArgument, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Show a session: its state, what waits, its tasks, and its last answer."""

    async def work(client: Client) -> None:
        found = await client.sessions.get(session)
        inbox, tasks, last = await found.inbox(is_whole=True), await found.tasks(), await found.result(wait=0)
        if as_json:
            print_json({**found.seen.model_dump(mode="json"), "inbox": inbox, "tasks": tasks, "result": last})
            return
        seen = found.seen
        facts: list[tuple[str, Any]] = [(name, getattr(seen, name)) for name in ("id", "agent", "model")]
        is_named = seen.title_from == "person"
        facts.insert(1, ("title", seen.title) if is_named else ("begins with", seen.preview))
        why = await reason(client, found)
        facts += [
            ("state", seen.state if why is None else f"{seen.state}: {why}"),
            ("turn", seen.turn_id),
            ("external id", seen.external_id),
            ("works for", seen.parent_id),
        ]
        facts += [("metadata", to_json(seen.metadata).decode() if seen.metadata else None)]
        facts += [("created", f"{seen.created_at:%Y-%m-%d %H:%M:%S}"), ("changed", f"{ago(seen.updated_at)} ago")]
        facts += [("waits", words.shortened(each.text, 80)) for each in inbox]
        facts += [("task", _task(each)) for each in tasks[:_SHOWN_TASKS]]
        facts += [("interrupted", _interrupted(found.id, each)) for each in seen.interrupted_calls]
        if last is not None:
            facts += [("last turn", last.state), ("said", last.text), ("output", unsaid(last.output, [last.text]))]
        print_facts(facts)

    ask(url, token, work)


def _task(task: Task) -> str:
    what = words.unknown(task)
    if what is None:
        return f"{task.id} {task.shown_state} {task.title}"
    return f"{task.id} {task.title} {what}: {words.settle_task(task)}"


def _interrupted(session_id: str, call: InterruptedCall) -> str:
    return f"{call.tool} (call {call.call_id}), {words.NOBODY_KNOWS}: {words.settle_command(call.call_id, session_id)}"


@app.command()
def rename(
    session: SessionArgument,
    title: Annotated[str, typer.Argument(help="The new title.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Give a session another title."""
    _change(session, url, token, as_json, f"It is called {title!r} now.", title=title)


@app.command()
def archive(
    session: SessionArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Take it out of the archive.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Put a session into the archive: lists leave it out."""
    _change(session, url, token, as_json, "Taken out." if undo else "Archived.", is_archived=not undo)


@app.command("set-agent")
def set_agent(
    session: SessionArgument,
    agent: Annotated[str, typer.Argument(help="The name of the agent.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Let another agent go on with a session, from its next turn. Refused while a turn runs or waits."""
    _change(session, url, token, as_json, f"Its next turns are those of {agent!r}.", agent=agent)


def _change(session: str, url: str | None, token: str | None, as_json: bool, said: str, **changes: Any) -> None:
    async def work(client: Client) -> None:
        changed = await (await client.sessions.get(session)).update(**changes)
        print_json(changed.seen) if as_json else print(said)

    ask(url, token, work)


@app.command()
def resume(session: SessionArgument, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """End a hold: what waited starts a turn."""
    _start(session, url, token, as_json, "resume")


@app.command()
def retry(session: SessionArgument, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Go on after a turn that failed or was stopped, from the last step that was kept."""
    _start(session, url, token, as_json, "retry")


@app.command()
def regenerate(session: SessionArgument, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Have the last message answered anew."""
    _start(session, url, token, as_json, "regenerate")


def _start(session: str, url: str | None, token: str | None, as_json: bool, verb: str) -> None:
    async def work(client: Client) -> None:
        turn = await getattr(await client.sessions.get(session), verb)()
        if as_json:
            print_json({"session_id": session, "turn_id": None if turn is None else turn.id})
        elif turn is None:
            print("Nothing waited; a message starts the next turn.")
        else:
            print(f"It goes on: outlast attach {session}")

    ask(url, token, work)


@app.command()
def delete(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Delete a session for good: its turn is stopped, its tasks are canceled."""
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("Say --yes: there is nobody to ask.")
    if not yes and not typer.confirm(f"Delete {session} and everything in it?"):
        raise typer.Exit(Exit.FAILED)

    async def work(client: Client) -> None:
        await client.sessions.delete(session)
        print_json({"deleted": session}) if as_json else print("Deleted.")

    ask(url, token, work)


@app.command()
def export(
    session: SessionArgument,
    file: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else to stdout.")] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Write a session as a JSON document that `sessions import` takes."""

    async def work(client: Client) -> None:
        document = await (await client.sessions.get(session)).export()
        if file is None:
            print_json(document)
        else:
            file.write_bytes(to_json(document, indent=2))
            say(f"Written to {file}")

    ask(url, token, work)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `sessions export` wrote; - reads stdin.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a new session from an exported one."""
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        document: Any = from_json(text)
    except (OSError, ValueError) as exc:
        raise typer.BadParameter(plain_line(f"{file} cannot be read: {exc}")) from exc

    async def work(client: Client) -> None:
        _say_made(await client.sessions.import_(document), as_json=as_json)

    ask(url, token, work)


@app.command()
def fork(
    session: SessionArgument,
    at: Annotated[int | None, typer.Option(min=0, help="The position of the last message to take along.")] = None,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a new session with the history of another."""

    async def work(client: Client) -> None:
        _say_made(await client.sessions.fork(session, at=at, title=title), as_json=as_json)

    ask(url, token, work)


def _say_made(made: Session, *, as_json: bool) -> None:
    print_json(made.seen) if as_json else print(made.id)
