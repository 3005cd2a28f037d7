"""`outlast doctor`: what is stuck, why, and what to do about it, as far as the server can tell."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from outlast.cli.asking import ask
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_json, print_table
from outlast.cli.terminal.words import NOBODY_KNOWS, settle_command, settle_task, shortened, unknown
from outlast.client import Client
from outlast.errors import Forbidden, NoWorkers, StoreUnavailable
from outlast.wire.message import InputAnswer
from outlast.wire.task import Task

_LONG = timedelta(minutes=1)
_MOST = 500


@dataclass(frozen=True, slots=True)
class Finding:
    id: str
    problem: str
    advice: str


def doctor(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Say what is stuck and why: held or waiting sessions, tasks and calls that do not end or whose effect is unknown.

    Looks at the 500 sessions that changed last and the 500 newest tasks of the key's owner. Exit code 1 when it finds
    something.
    """

    async def work(client: Client) -> Exit:
        found = [each async for each in _findings(client)]
        if as_json:
            print_json(found)
        elif not found:
            print("Nothing is stuck.")
        else:
            print_table(("WHAT", "PROBLEM", "TRY"), [(each.id, each.problem, each.advice) for each in found])
        return Exit.FAILED if found else Exit.OK

    ask(url, token, work)


async def _findings(client: Client) -> AsyncIterator[Finding]:
    try:
        await client.check()
    except StoreUnavailable as exc:
        yield Finding("server", exc.message, "look at its disk and its log")
        return
    except NoWorkers as exc:
        yield Finding("server", exc.message, "outlast worker APP")
    with suppress(Forbidden):  # only admins are told
        paused = await client.paused()
        if paused.is_paused:
            yield Finding("server", f"paused by {paused.by}: nothing new is started", "outlast resume")
    for task in (await client.tasks.requests(limit=_MOST)).items:
        yield _needed(task)
    report = await client.usage()
    is_at_limit = report.percent is not None and report.percent >= 100
    if is_at_limit:
        yield Finding("server", "today's limit is reached", f"turns start again at {report.resets_at:%H:%M} UTC")
    async for each in _sessions(client, is_at_limit=is_at_limit):
        yield each
    now = datetime.now(UTC)
    for state in ("open", "failed"):
        for task in await client.tasks.list(state=state, limit=_MOST):
            found = _of_task(task, now)
            if found is not None:
                yield found


async def _sessions(client: Client, *, is_at_limit: bool) -> AsyncIterator[Finding]:
    for session in await client.sessions.list(limit=_MOST):
        if session.state == "held" and (waiting := waiting_in(await session.inbox(is_whole=True))):
            yield Finding(session.id, f"held; {waiting}", f"outlast sessions resume {session.id}")
        for call in session.interrupted_calls:
            problem = f"{call.tool} (call {call.call_id}) was interrupted, {NOBODY_KNOWS}"
            yield Finding(session.id, problem, settle_command(call.call_id, session.id))
        waits = datetime.now(UTC) - session.updated_at
        if session.no_worker_for is not None:
            missing = f"no worker has its agent {session.no_worker_for!r}"
            yield Finding(session.id, missing, f"start one that has it, or outlast stop {session.id}")
        elif session.state == "queued" and waits > _LONG and not is_at_limit:
            yield Finding(session.id, "its turn waits for a place", "turns that run must end first, or start a worker")


def waiting_in(inbox: Sequence[InputAnswer]) -> str:
    """`2 messages wait, 1 result waits`, or nothing."""
    messages = sum(each.kind == "message" for each in inbox)
    counts = (("message", messages), ("result", len(inbox) - messages))
    return ", ".join(f"1 {what} waits" if many == 1 else f"{many} {what}s wait" for what, many in counts if many)


def _needed(task: Task) -> Finding:
    """Somebody has to answer before it goes on."""
    request = task.request
    assert request is not None
    advice = {
        "approval": f"outlast approve {task.id}, or outlast refuse {task.id}",
        "question": f"outlast reply {task.id} ANSWER",
        "connection": f"outlast connections set {request.provider}",
    }
    return Finding(task.id, f"{task.title} waits for you: {shortened(request.prompt, 100)}", advice[request.kind])


def _of_task(task: Task, now: datetime) -> Finding | None:
    if task.is_over:
        what = unknown(task)
        return None if what is None else Finding(task.id, f"{task.title} {what}", settle_task(task))
    if task.is_cancel_requested:
        return Finding(task.id, f"{task.title} was asked to cancel and goes on", f"outlast logs {task.id}")
    if task.deadline_at is not None and task.deadline_at < now:
        return Finding(task.id, f"{task.title} is past its deadline", f"outlast cancel {task.id}")
    if task.no_worker_for is not None:
        missing = f"{task.title}: no worker has its agent {task.no_worker_for!r}"
        return Finding(task.id, missing, f"start one that has it, or outlast cancel {task.id}")
    if task.state == "queued" and now - task.created_at > _LONG:
        return Finding(task.id, f"{task.title} waits for a place", "other tasks must end first")
    return None
