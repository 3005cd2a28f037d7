"""Verbs about what tasks ask people for: approvals, approve, refuse, reply."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer
from pydantic_core import from_json, to_json

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal import words
from outlast.cli.terminal.tables import ago, print_json, print_table
from outlast.cli.verbs.tasks import TaskArgument
from outlast.client import Client
from outlast.errors import OutlastError
from outlast.wire.task import Task

SomeTasks = Annotated[list[str], typer.Argument(metavar="TASK...", help="The ids of one task or several.")]
By = Annotated[str | None, typer.Option(help="Who says so, beside the name of the key.")]


def approvals(
    session: Annotated[str | None, typer.Option(metavar="ID", help="Of this session and those below it.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List what waits for a person: approvals, questions and connections."""

    async def work(client: Client) -> None:
        found = await _requests(client, session)
        if as_json:
            print_json(found)
        elif not found:
            say("Nobody is needed.")
        else:
            rows = [(each.id, *_asked(each), ago(each.request.asked_at)) for each in found if each.request]
            print_table(["TASK", "KIND", "ASKS", "SINCE"], rows, elastic="ASKS")

    ask(url, token, work)


async def _requests(client: Client, session_id: str | None) -> list[Task]:
    found: list[Task] = []
    before: str | None = None
    while True:
        page = await client.tasks.requests(session_id=session_id, before=before, limit=500)
        found.extend(page.items)
        if page.next is None:
            return found
        before = page.next


def _asked(task: Task) -> tuple[str, str]:
    request = task.request
    assert request is not None
    if request.kind == "approval":
        return request.kind, words.shortened(f"{task.tool} {to_json(request.args).decode()}", 200)
    return request.kind, words.shortened(request.prompt, 200)


def approve(
    tasks: SomeTasks,
    args: Annotated[
        str | None, typer.Option(help="Run it with these arguments instead, a JSON object; for one task.")
    ] = None,
    always: Annotated[
        bool, typer.Option("--always", help="Later calls of the tool in that session run without being asked for.")
    ] = False,
    rule: Annotated[
        str | None, typer.Option(help="Those that this rule is about do, such as 'pay(amount<=100)'.")
    ] = None,
    by: By = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Let calls run that wait for an approval."""
    if args is not None and len(tasks) > 1:
        raise typer.BadParameter("--args is for one task.")
    changed = None if args is None else _json(args)

    async def one(client: Client, task_id: str) -> Task:
        return await client.tasks.approve(task_id, by=by, args=changed, always=rule or always)

    _each(tasks, one, "approved", url, token, as_json=as_json)


def ask_again(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the session.")],
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Its id, or `all`.")] = "all",
    url: Url = None,
    token: Token = None,
) -> None:
    """Ask for approvals again that `approve --always` spared a session."""

    async def work(client: Client) -> None:
        found = await client.sessions.get(session)
        rules = [each for each in found.permissions.always if rule in ("all", each.id)]
        for each in rules:
            await found.withdraw_always(each.id)
            say(f"{each.rule} is asked for again.")
        if not rules:
            say("There is no such rule.")

    ask(url, token, work)


def refuse(
    tasks: SomeTasks,
    reason: Annotated[str, typer.Option(help="Why; the model is told.")] = "",
    by: By = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Keep calls from running that wait for an approval."""

    async def one(client: Client, task_id: str) -> Task:
        return await client.tasks.refuse(task_id, by=by, reason=reason)

    _each(tasks, one, "refused", url, token, as_json=as_json)


def _each(
    tasks: list[str],
    decide: Callable[[Client, str], Awaitable[Task]],
    word: str,
    url: str | None,
    token: str | None,
    *,
    as_json: bool,
) -> None:
    """All of them, also when one was decided by somebody else meanwhile."""

    async def work(client: Client) -> Exit | None:
        done: list[Task] = []
        for task_id in tasks:
            try:
                done.append(await decide(client, task_id))
            except OutlastError as exc:
                if len(tasks) == 1:
                    raise
                say(f"{task_id}: {exc.message}")
            else:
                say(f"{task_id}: {word}.")
        if as_json:
            print_json(done)
        return None if len(done) == len(tasks) else Exit.FAILED

    ask(url, token, work)


def reply(
    task: TaskArgument,
    answer: Annotated[str, typer.Argument(help="A text, or JSON where the question has a schema.")],
    by: By = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Answer the question that a task asks."""

    async def work(client: Client) -> None:
        request = (await client.tasks.get(task)).request
        value = answer if request is None or request.schema_ is None else _value(answer)
        answered = await client.tasks.reply(task, value, by=by, request_id=None if request is None else request.id)
        if as_json:
            print_json(answered)
        else:
            say(f"{task}: answered.")

    ask(url, token, work)


def _json(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError as exc:
        raise typer.BadParameter(f"{text!r} is not JSON: {exc}.") from exc


def _value(text: str) -> Any:
    """As JSON if it is; a plain word may be what the schema wants."""
    try:
        return from_json(text)
    except ValueError:
        return text
