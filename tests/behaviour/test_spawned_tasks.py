"""Tools that are set going on purpose: by the model, or by a program; validated, kept once, told once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool

from outlast import Binding, Outlast, Permissions, Session, Task, hints
from outlast.errors import Forbidden, IdempotencyMismatch, InvalidInput, NotFound, TooManyTasks
from outlast.store.repositories.stored_task import WakePolicy
from outlast.testing import ScriptedModel, call
from outlast.wire.task_state import TaskState
from tests.support.turns.background import stored_task, wakes_seen
from tests.support.turns.runtime import Runtime, events_of, scripted

PATIENCE = 60.0


async def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


def spawning(tool: str, **options: Any) -> Any:
    return call("spawn_background", tool=tool, call_id="spawn", **options)


async def ended(outlast: Outlast[Any, Any], task: Task) -> Task:
    found = await outlast.tasks.wait(task.id, seconds=PATIENCE)
    assert found.is_over, found
    return found


async def result_of(session: Session, text: str = "Go.") -> Any:
    """What the model was given for its call of `spawn_background`."""
    outcome = await session.ask(text, wait=PATIENCE)
    assert outcome.state == "completed", outcome
    (ended,) = [each for each in await events_of(session, "call.ended") if each.data["call_id"] == "spawn"]
    return ended.data["part"]["content"]


async def test_the_model_sets_a_tool_going_and_is_woken_with_its_result(runtime: Runtime) -> None:
    """B3, B7: the handle comes at once; the task has the tool, title and arguments; its end is told once."""
    model = scripted([spawning("double", args={"number": 21}, title="a sum")], "Set going.", "It is 42.")
    async with runtime(model, tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        handle = await result_of(session)
        (task,) = await session.tasks()
        assert (handle["type"], handle["task_id"], handle["tool"]) == ("background", task.id, "double")
        assert (task.title, task.result, task.origin, task.kind) == ("a sum", 42, "spawn", "call")
        assert task.args == {"number": 21}
        assert task.turn_id is not None
        (seen,) = await wakes_seen(session)
        assert task.id in seen
        told = [each.data["task"] for each in await events_of(session, "task.created", "task.changed", "task.ended")]
        assert [each["state"] for each in told] == ["queued", "running", "succeeded"]
        assert {each["origin"] for each in told} == {"spawn"}


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("doubel", {"number": 1}, "one of: double"),
        ("double", {"number": "many"}, "number: Input should be a valid integer"),
        ("double", {}, "number: Field required"),
        ("spawn_background", {"tool": "double", "args": {}}, "cannot be spawned"),
        ("check_background", {"list": True}, "cannot be spawned"),
    ],
)
async def test_what_cannot_be_run_is_refused_before_anything_is_kept(
    embedded: Runtime, tool: str, args: dict[str, Any], words: str
) -> None:
    """B3: itself and other control tools, unknown tools with the near names, arguments that do not fit."""
    async with embedded(scripted([spawning(tool, args=args)], "No."), tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        assert words in await result_of(session)
        assert await session.tasks() == []


async def test_a_tool_s_own_validator_and_the_session_s_permissions_are_heeded(runtime: Runtime) -> None:
    """B3, A7: a refusal says why."""

    def even(ctx: RunContext[Any], number: int) -> None:
        if number % 2:
            raise ModelRetry("only even numbers")

    model = scripted([spawning("double", args={"number": 3})], "No.", [spawning("double", args={"number": 8})], "No.")
    async with runtime(model, tools=[Tool(double, args_validator=even)]) as outlast:
        odd = await outlast.sessions.create()
        assert "only even numbers" in await result_of(odd)
        denied = await outlast.sessions.create(permissions=Permissions(deny=["double(number>7)"]))
        assert "denies double(number>7)" in await result_of(denied)
        with pytest.raises(Forbidden, match="denies"):
            await denied.spawn("double", {"number": 9})
        assert [*await odd.tasks(), *await denied.tasks()] == []


async def test_what_rules_say_of_arguments_holds_for_those_that_the_tool_gets(runtime: Runtime) -> None:
    """A7, B3: its defaults, and text that is a number, are judged as in a call; what then is denied fails."""

    def pay(amount: int = 5, currency: str = "EUR") -> str:
        return f"paid {amount} {currency}"

    model = scripted(spawning("pay", args={"amount": "7"}), "Soon.", "Paid.")
    async with runtime(model, tools=[pay]) as outlast:
        lists = Permissions(allow=["pay(amount<=100)", "double"], deny=["pay(currency=='USD')"])
        session = await outlast.sessions.create(permissions=lists)
        by_model = await outlast.tasks.wait((await result_of(session))["task_id"], seconds=PATIENCE)
        by_default = await ended(outlast, await session.spawn("pay", wake="silent"))
        assert [by_model.result, by_default.result] == ["paid 7 EUR", "paid 5 EUR"]
        for wrong in ({"amount": 101}, {"currency": "USD"}):
            with pytest.raises(Forbidden):
                await session.spawn("pay", wrong)
        strict = await outlast.sessions.create(permissions=Permissions(allow=["pay(amount<=1)"]))
        failed = await ended(outlast, await strict.spawn("pay", wake="silent"))
        assert failed.error is not None
        assert "allows only pay(amount<=1)" in failed.error["message"]


async def test_in_a_bound_session_what_is_spawned_is_about_its_resource(runtime: Runtime) -> None:
    """B3, D11: a program need not name it, as the model need not, and can name no other."""

    def pay(invoice_id: int) -> str:
        return f"paid {invoice_id}"

    model = scripted(spawning("pay", args={}), "Soon.", "Paid.", [spawning("pay", args={"invoice_id": 9})], "No.")
    async with runtime(model, tools=[pay]) as outlast:
        bound = Binding(kind="invoice", id="4711", defaults={"invoice_id": 4711})
        session = await outlast.sessions.create(binding=bound)
        by_model = await outlast.tasks.wait((await result_of(session))["task_id"], seconds=PATIENCE)
        await session.settled(wait=PATIENCE)
        by_program = await ended(outlast, await session.spawn("pay", wake="silent"))
        assert [by_model.result, by_program.result] == ["paid 4711", "paid 4711"]
        with pytest.raises(Forbidden, match="this session is about invoice 4711"):
            await session.spawn("pay", {"invoice_id": 9})
        await session.ask("another one", wait=PATIENCE)
        last = (await events_of(session, "call.ended"))[-1].data["part"]
        assert "this session is about invoice 4711" in str(last["content"])
        assert len(await session.tasks()) == 2


async def test_a_program_spawns_and_the_session_is_woken(runtime: Runtime) -> None:
    """B3, K5: `session.spawn` is what the model's tool is; a silent one wakes nobody."""
    async with runtime(scripted("Heard."), tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        quiet = await session.spawn("double", {"number": 1}, wake="silent")
        assert (await ended(outlast, quiet)).result == 2
        assert await session.first_turn() is None
        told = await session.spawn("double", {"number": 2}, title="loud", group="sums")
        assert (told.title, told.group, told.wake, told.place) == ("loud", "sums", WakePolicy.ON_TERMINAL, None)
        await session.settled(wait=PATIENCE)
        (seen,) = await wakes_seen(session)
        assert told.id in seen


async def test_a_program_is_told_what_does_not_fit(runtime: Runtime) -> None:
    """B3, G2: another owner's session and one that is not there are the same; nothing is kept of a refusal."""
    async with runtime(tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(InvalidInput, match="one of: double"):
            await session.spawn("duoble", {"number": 1})
        with pytest.raises(InvalidInput, match="number"):
            await session.spawn("double", {"number": "many"})
        with pytest.raises(InvalidInput, match="wake"):
            await session.spawn("double", {"number": 1}, wake="loud")  # pyright: ignore[reportArgumentType]
        outlast.secrets.add("hunter2-hunter2")
        with pytest.raises(InvalidInput, match="secret"):
            await session.spawn("double", {"number": 1, "note": "hunter2-hunter2"})
        assert await session.tasks() == []
        await outlast.sessions.delete(session.id)
        with pytest.raises(NotFound):
            await session.spawn("double", {"number": 1})


async def test_a_key_makes_one_task(runtime: Runtime) -> None:
    """B3, D2: also at the same moment; with another content it is refused."""
    async with runtime(tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        asked = [session.spawn("double", {"number": 4}, wake="silent", idempotency_key="k") for _ in range(5)]
        made = {each.id for each in await asyncio.gather(*asked)}
        assert len(made) == len(await session.tasks()) == 1
        with pytest.raises(IdempotencyMismatch):
            await session.spawn("double", {"number": 5}, idempotency_key="k")


async def test_five_run_and_the_others_wait_in_order(runtime: Runtime) -> None:
    """B5: beyond the cap a task is queued and says its place; a place that is free goes to the next."""
    begun: list[int] = []
    may_end = asyncio.Semaphore(0)

    async def work(number: int) -> int:
        begun.append(number)
        await may_end.acquire()
        return number

    async with runtime(tools=[Tool(work)]) as outlast:
        session = await outlast.sessions.create()
        made = [await session.spawn("work", {"number": at}, wake="silent") for at in range(8)]
        assert [each.place for each in made] == [None] * 5 + [1, 2, 3]
        await _until(lambda: len(begun) == 5)
        seen = {each.id: each.place for each in await outlast.tasks.list(state="open")}
        assert [seen[each.id] for each in made] == [None] * 5 + [1, 2, 3]
        assert (await outlast.tasks.get(made[6].id)).place == 2
        told = {each.task_id: each.data["task"].get("place") for each in await events_of(session, "task.created")}
        assert [told[each.id] for each in made] == [None] * 5 + [1, 2, 3]
        assert (await outlast.tasks.cancel(made[5].id)).state is TaskState.CANCELED
        assert (await outlast.tasks.get(made[6].id)).place == 1
        may_end.release()
        await _until(lambda: len(begun) == 6)
        assert begun[-1] == 6
        for _ in made:
            may_end.release()
        assert [(await ended(outlast, each)).result for each in made] == [0, 1, 2, 3, 4, None, 6, 7]
        assert begun[-1] == 7


async def test_an_owner_has_so_many_places_over_all_sessions(runtime: Runtime) -> None:
    """B5: what ends in one session lets the next of another begin; another owner's are not concerned."""
    begun: list[str] = []
    may_end = {name: asyncio.Event() for name in ("a", "b", "c", "d", "hers")}

    async def work(name: str) -> str:
        begun.append(name)
        await may_end[name].wait()
        return name

    async with runtime(tools=[Tool(work)], max_spawned_per_owner=2) as outlast:
        first, second = await outlast.sessions.create(), await outlast.sessions.create()
        made = [
            await session.spawn("work", {"name": name}, wake="silent")
            for session, name in ((first, "a"), (first, "b"), (second, "c"), (second, "d"))
        ]
        other = await outlast.owned_by("ada").create()
        await other.spawn("work", {"name": "hers"}, wake="silent")
        await _until(lambda: len(begun) == 3)
        assert set(begun) == {"a", "b", "hers"}
        for name, next_one in (("b", "c"), ("c", "d")):
            may_end[name].set()
            await _until(lambda next_one=next_one: begun[-1] == next_one)
        for each in may_end.values():
            each.set()
        for each in made:
            await ended(outlast, each)


async def test_at_the_limit_of_open_tasks_spawning_is_refused_with_the_list(runtime: Runtime) -> None:
    """B5: the model and a program are told which are open."""
    may_end = asyncio.Event()

    async def work() -> None:
        await may_end.wait()

    model = scripted([spawning("work", args={})], "Full.")
    async with runtime(model, tools=[Tool(work)], max_open_tasks_per_session=2) as outlast:
        session = await outlast.sessions.create()
        made = [await session.spawn("work", {}, wake="silent") for _ in range(2)]
        with pytest.raises(TooManyTasks) as refused:
            await session.spawn("work", {})
        assert [each["task_id"] for each in refused.value.details["open"]] == [each.id for each in made]
        words = await result_of(session)
        assert all(each.id in words for each in made)
        may_end.set()
        for each in made:
            await ended(outlast, each)


async def test_check_background_shows_the_place(runtime: Runtime) -> None:
    """B2, B5."""
    may_end = asyncio.Event()

    async def work() -> None:
        await may_end.wait()

    model = scripted([call("check_background", list=True, call_id="look")], "Seen.", "Heard.", "Heard.")
    async with runtime(model, tools=[Tool(work)], max_spawned_per_session=1) as outlast:
        session = await outlast.sessions.create()
        made = [await session.spawn("work", {}, wake="silent") for _ in range(2)]
        await session.ask("Look.", wait=PATIENCE)
        (look,) = await events_of(session, "call.ended")
        places = {each["task_id"]: each.get("place") for each in look.data["part"]["content"]["tasks"]}
        assert places == {made[0].id: None, made[1].id: 1}
        may_end.set()
        for each in made:
            await ended(outlast, each)


async def test_hints_say_what_is_not_asked_for(runtime: Runtime) -> None:
    """A1: `wake`, `group` and `max_attempts` of the tool hold where nothing else is said."""
    tool = Tool(double, metadata=hints(wake="silent", group="sums", max_attempts=2, idempotent=True))
    async with runtime(tools=[tool]) as outlast:
        session = await outlast.sessions.create()
        task = await session.spawn("double", {"number": 1})
        assert (task.wake, task.group, task.may_run_again) == ("silent", "sums", True)
        assert (await stored_task(outlast, task.id)).max_attempts == 2
        await ended(outlast, task)
        woken = await session.spawn("double", {"number": 1}, wake="on_terminal")
        assert woken.wake == "on_terminal"
        await session.settled(wait=PATIENCE)
    with pytest.raises(InvalidInput, match="concurrency"):
        hints(concurrency=0)
    with pytest.raises(InvalidInput, match="max_attempts"):
        hints(max_attempts=0)


async def test_no_more_calls_of_a_tool_run_at_once_than_it_says(runtime: Runtime) -> None:
    """A1: `concurrency` bounds the calls of a tool in a worker, those of turns and of tasks together."""
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    model = scripted([call("work", call_id="one"), call("work", call_id="two")], "Done.")
    async with runtime(model, tools=[Tool(work, metadata=hints(concurrency=1))]) as outlast:
        session = await outlast.sessions.create()
        made = [await session.spawn("work", wake="silent") for _ in range(4)]
        assert (await session.ask("Work.", wait=PATIENCE)).state == "completed"
        assert {(await ended(outlast, each)).state for each in made} == {TaskState.SUCCEEDED}
    assert most == 1


async def test_a_sync_tool_a_failing_one_and_one_with_dependencies(runtime: Runtime) -> None:
    """B3, A1: any tool of the agent; an error of the tool is the task's."""

    @asynccontextmanager
    async def deps(_: Any) -> AsyncGenerator[str]:
        yield "the river"

    def where(ctx: RunContext[str]) -> str:
        return ctx.deps

    def fail() -> None:
        raise ModelRetry("too wet")

    agent = Agent(ScriptedModel(["Heard."]), deps_type=str, tools=[Tool(where, takes_ctx=True), fail], name="agent")
    async with runtime(agent=agent, deps=deps) as outlast:
        session = await outlast.sessions.create()
        found = await ended(outlast, await session.spawn("where", wake="silent"))
        assert (found.state, found.result) == (TaskState.SUCCEEDED, "the river")
        failed = await ended(outlast, await session.spawn("fail", wake="silent"))
        assert failed.error is not None
        assert (failed.error["kind"], "too wet" in failed.error["message"]) == ("tool_error", True)


async def _until(is_so: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110 - on the event loop
            await asyncio.sleep(0.01)
