"""Verbs about background tasks: ps, logs, wait, cancel, complete, settle."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, TextIO

import typer

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Timeout, Token, Url
from outlast.cli.terminal import words
from outlast.cli.terminal.stream import raw
from outlast.cli.terminal.tables import ago, print_json, print_json_line, print_table
from outlast.client import Client
from outlast.wire.task import PieceAnswer, Task

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The id of a task.")]
_ORDER = ("awaiting_input", "running", "queued")
_MARKS = {"succeeded": "✓", "failed": "✗", "canceled": "■"}


def ps(
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Of this session only.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List background tasks: those that wait for a person, those that run, those that wait, with --all the others."""

    async def work(client: Client) -> None:
        found = await _tasks(client, session, is_all=all_, limit=limit)
        if as_json:
            print_json(found)
        elif not found:
            say("No tasks." if all_ else "No task is running. --all shows those that have ended.")
        else:
            _print(found)

    ask(url, token, work)


def _print(found: list[Task]) -> None:
    """Agents are named where there are several."""
    columns: dict[str, Callable[[Task], str]] = {
        "TASK": lambda each: each.id,
        "STATE": _state,
        **({"AGENT": lambda each: each.agent} if len({each.agent for each in found}) > 1 else {}),
        "TITLE": lambda each: each.name,
        "PROGRESS": _progress,
        "AGE": lambda each: ago(each.since),
    }
    rows = [[cell(each) for cell in columns.values()] for each in found]
    print_table(list(columns), rows, elastic="TITLE")


async def _tasks(client: Client, session_id: str | None, *, is_all: bool, limit: int) -> list[Task]:
    """Open ones come whole, page by page: an old one that still runs must not be left out for newer ones."""
    found: dict[str, Task] = {}
    states: list[Literal["open"] | None] = ["open", None] if is_all else ["open"]
    for state in states:
        before: str | None = None
        while len(found) < limit:
            page = await client.tasks.page(session_id=session_id, state=state, before=before, limit=min(limit, 500))
            found.update((each.id, each) for each in page.items if each.id not in found)
            before = page.next
            if before is None:
                break
    return sorted(found.values(), key=_place)[:limit]


def _place(task: Task) -> tuple[int, float]:
    at = _ORDER.index(task.state) if task.state in _ORDER else len(_ORDER)
    return at, -task.created_at.timestamp()


def _state(task: Task) -> str:
    if task.no_worker_for is not None:
        return f"queued, no worker for {task.no_worker_for!r}"
    if task.place is not None:
        return f"queued, place {task.place}"
    return f"{task.state}, canceling" if task.is_cancel_requested and not task.is_over else task.shown_state


def _progress(task: Task) -> str:
    if task.settled is not None:
        return words.shortened(f"by {task.settled.by}. {task.settled.note}".strip(), 60)
    if task.is_over:
        return words.shortened(str((task.error or {}).get("message", "")), 60)
    if task.state == "awaiting_input" and task.request is not None:
        return words.shortened(task.request.prompt, 60)
    return words.progress_line(task.progress)


def logs(
    task: TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    as_is: Annotated[
        bool, typer.Option("--raw", help="Into a pipe or file: exactly as it was put out, control characters too.")
    ] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what a task has put out; with -f while it runs, and then its end gives the exit code.

    Control characters are shown and not obeyed, unless --raw is given.
    """
    if as_is and raw(sys.stdout).isatty():
        raise typer.BadParameter("--raw is for pipes and files: a terminal would obey what it is sent.")
    out = raw(sys.stdout) if as_is else sys.stdout

    async def work(client: Client) -> Exit | None:
        if follow:
            return await _follow(client, task, out, as_json=as_json)
        offset = 0
        while True:
            piece = await client.tasks.output(task, offset=offset)
            if piece.next_offset <= offset:
                return None
            _put_out(piece, offset, out, as_json=as_json)
            offset = piece.next_offset

    ask(url, token, work, on_interrupt=lambda: f"Left. The task goes on: outlast logs -f {task}")


async def _follow(client: Client, task_id: str, out: TextIO, *, as_json: bool) -> Exit:
    async with client.tasks.follow(task_id) as pieces:
        offset = 0
        async for piece in pieces:
            _put_out(piece, offset, out, as_json=as_json)
            offset = piece.next_offset
    ended = pieces.ended or await client.tasks.get(task_id)
    say(end_line(ended))
    return Exit.OK if ended.has_worked else Exit.FAILED


def _put_out(piece: PieceAnswer, offset: int, out: TextIO, *, as_json: bool) -> None:
    if as_json:
        print_json_line(piece)
        return
    if piece.offset > offset:
        out.write(f"\n[{piece.offset - offset} characters are no longer kept]\n")
    out.write(piece.text)
    out.flush()


def wait(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="The ids of tasks.")],
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Wait until all these tasks have ended."""

    async def work(client: Client) -> Exit:
        ended = await _wait_for_all(client, tasks, timeout, is_told=not as_json)
        if as_json:
            print_json(ended)
        if not all(each.is_over for each in ended):
            return Exit.STILL_RUNNING
        return Exit.OK if all(each.has_worked for each in ended) else Exit.FAILED

    ask(url, token, work, on_interrupt=lambda: "Left. The tasks go on in the server.")


async def _wait_for_all(client: Client, tasks: list[str], timeout: float | None, *, is_told: bool) -> list[Task]:
    try:
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(_wait(client, each, timeout, is_told=is_told)) for each in tasks]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [each.result() for each in waits]


async def _wait(client: Client, task_id: str, timeout: float | None, *, is_told: bool) -> Task:
    task = await client.tasks.wait(task_id, seconds=timeout)
    if is_told:
        print(end_line(task), flush=True)
    return task


def cancel(
    task: TaskArgument,
    timeout: Annotated[float, typer.Option(min=0, max=300, metavar="SECONDS", help="How long to wait for its end.")] = (
        10.0
    ),
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Ask a task to cancel, and say what really became of it."""

    async def work(client: Client) -> Exit:
        found = await client.tasks.cancel(task, wait=timeout)
        if as_json:
            print_json(found)
        elif found.is_over:
            print(end_line(found))
        else:
            say(f"It is asked to cancel and has not confirmed it yet: outlast wait {task}")
        return Exit.OK if found.is_over else Exit.STILL_RUNNING

    ask(url, token, work)


def complete(
    task: TaskArgument,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="What it came to, as JSON; what is no JSON is taken as text.")
    ] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it failed.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say how an operation ended that is done elsewhere, and that nobody has completed; the model is told."""
    if result is not None and error is not None:
        raise typer.BadParameter("An operation ends with a result or with an error: give one of them.")

    async def work(client: Client) -> None:
        answer = await client.tasks.complete(task, result=_json_or_text(result), error=error)
        if as_json:
            print_json(answer)
        elif answer.applied:
            print(f"Completed as {answer.state}; the model will hear of it.")
        else:
            print(f"It had ended before, as {answer.state}: nothing has changed.")

    ask(url, token, work)


def _json_or_text(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except ValueError:
        return given


def settle(
    what: Annotated[str, typer.Argument(metavar="TASK|CALL", help="A task, or with --session a call.")],
    verdict: Annotated[Literal["worked", "failed", "try_again"], typer.Argument(help="What became of it.")],
    session: Annotated[str | None, typer.Option(metavar="ID", help="The session of a call.")] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What the model should know of it.")] = "",
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who says so, beside the key's name. [default: that name]")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of a task or call that may or may not have taken effect; the model is told."""

    async def work(client: Client) -> None:
        if session is None:
            answer = await client.tasks.settle(what, verdict, note=note, by=by)
        else:
            answer = await (await client.sessions.get(session)).settle_call(what, verdict, note=note, by=by)
        if as_json:
            print_json(answer)
        else:
            print(f"Settled as {verdict}; the model will hear of it.")
            if isinstance(answer, Task) and "retried_as" in answer.links:
                print(f"It is tried again: outlast wait {answer.links['retried_as']}")

    ask(url, token, work)


def end_line(task: Task) -> str:
    if not task.is_over:
        return f"… {task.name} is still {_state(task)}  {task.id}"
    if task.settled is not None:
        mark = _MARKS["succeeded" if task.has_worked else "failed"]
        return f"{mark} {task.title} was settled as {task.settled.verdict} by {task.settled.by}  {task.id}"
    why = f": {task.error.get('message', '')}" if task.error else ""
    if task.narration is not None:
        return f"{_MARKS[task.state]} {task.narration}{why}  {task.id}"
    return f"{_MARKS[task.state]} {task.title} has {_PAST[task.state]}{why}  {task.id}"


_PAST = {"succeeded": "succeeded", "failed": "failed", "canceled": "been canceled"}
