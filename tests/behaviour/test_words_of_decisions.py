"""What people and tools say around a decision: registered values in it are masked before it is stored (A11), and
odd values in it harm nobody (G3)."""

from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred

import outlast as public
from fuzz import nasty
from outlast import Outlast, Session, Task
from outlast.testing import call
from tests.behaviour.test_secrets import VALUE, leaks, stored
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, events_of, scripted


async def register() -> str:
    public.secret(VALUE)
    return "registered"


def pay(to: str) -> str:
    raise ApprovalRequired({"why": VALUE, VALUE: [VALUE], "to": to})


async def wonder() -> str:
    answer = await public.ask(f"Is it {VALUE}?", {"type": "string", "title": VALUE})
    return "yes" if answer == VALUE else "no"


async def asked(outlast: Outlast[Any, Any], session: Session) -> Task:
    """What the session's second message is about."""
    await session.ask("Register it.")
    await (await session.send("Go on.")).outcome()
    [task] = (await outlast.tasks.requests(session_id=session.id)).items
    return task


async def test_why_a_call_was_refused_is_masked(runtime: Runtime) -> None:
    """A11: what its tool says of it, what a person says, and what the model is told of that; nothing of it is kept."""
    model = scripted(call("register"), "Registered.", call("pay", to="Ada"), "It waits.", "I see.")
    async with runtime(model, tools=[register, pay]) as outlast:
        session = await outlast.sessions.create()
        task = await asked(outlast, session)
        await outlast.tasks.refuse(task.id, by=f"Ada {VALUE}", reason=f"It has {VALUE}.")
        await session.settled()
        shown = [await events_of(session), await session.export(), await session.view(), await session.tasks()]
        assert leaks(*shown, await stored(outlast), [each.messages for each in model.requests]) == []
        assert "refused it" in str(model.requests[-1].messages)


async def test_an_answer_is_told_masked_to_all_but_the_tool(runtime: Runtime) -> None:
    """A11: the tool gets what was said; the log never has it."""
    model = scripted(call("register"), "Registered.", call("wonder"), "It asks.", "I see.")
    async with runtime(model, tools=[register, wonder]) as outlast:
        session = await outlast.sessions.create()
        task = await asked(outlast, session)
        await outlast.tasks.reply(task.id, VALUE, by=VALUE)
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "yes"
        await session.settled()
    async with runtime(model, tools=[register, wonder]) as outlast:
        assert leaks(*await everything(await outlast.sessions.get(session.id))) == []


async def test_changed_arguments_are_told_masked_to_all_but_the_tool(runtime: Runtime) -> None:
    """A11: as an answer is."""
    paid: list[str] = []

    def transfer(to: str) -> str:
        paid.append(to)
        return "paid"

    tools = [register, Tool(transfer, requires_approval=True)]
    steps = [call("register"), "Registered.", call("transfer", to=VALUE), "It waits.", "I see."]
    async with runtime(scripted(*steps), tools=tools) as outlast:
        session = await outlast.sessions.create()
        task = await asked(outlast, session)
        await outlast.tasks.approve(task.id, by=VALUE, args={"to": f"{VALUE}!"})
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "paid"
        await session.settled()
        assert paid == [f"{VALUE}!"]
    async with runtime(scripted(*steps), tools=tools) as outlast:
        assert leaks(*await everything(await outlast.sessions.get(session.id))) == []


async def everything(session: Session) -> list[Any]:
    """All that is told of a session to who knows no value, but for the arguments with which a call may be run."""
    tasks = [{**each.model_dump(), "args": None} for each in await session.tasks()]
    events = [each for each in await events_of(session) if each.type.startswith("request.")]
    return [events, tasks, await session.messages(), await session.inbox(is_whole=True)]


async def test_why_a_call_was_settled_is_masked(runtime: Runtime) -> None:
    """A11: of a call, and of a task."""
    here = Checkpoint()

    async def charge() -> None:
        await here()

    model = scripted(call("register"), "Registered.", call("charge", call_id="c1"), "Good to know.")
    async with runtime(model, tools=[register, charge]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Register it.")
        await session.send("Go on.")
        await here.reached()
        await session.stop()
        await session.settle_call("c1", "worked", by=f"Ada {VALUE}", note=f"It used {VALUE}.")
        await session.settled()
        assert leaks(await events_of(session), await stored(outlast)) == []


async def test_whatever_a_tool_says_of_what_it_asks_for_is_no_failure_of_its_turn(runtime: Runtime) -> None:
    """G3, A13: a person is asked, sees what can be shown of it, and decides."""

    def sell(ctx: RunContext[None], number: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(nasty.ODDITIES[number]())
        return "sold"

    def hand_out(number: int) -> str:
        raise CallDeferred(nasty.ODDITIES[number]())

    calls = [[call("sell", number=number), call("hand_out", number=number)] for number in range(len(nasty.ODDITIES))]
    model = scripted(*(step for each in calls for step in (each, "It waits.")))
    async with runtime(model, tools=[sell, hand_out], max_open_tasks_per_session=200) as outlast:
        session = await outlast.sessions.create()
        for number in range(len(nasty.ODDITIES)):
            outcome = await (await session.send("Sell it.")).outcome()
            assert (number, outcome.state, outcome.error) == (number, "completed", None)
        asking = (await outlast.tasks.requests(limit=100)).items
        assert len(asking) == len(nasty.ODDITIES)
        await session.stop()
        for task in asking:
            await outlast.tasks.approve(task.id)
        assert {(await outlast.tasks.wait(task.id, seconds=20)).result for task in asking} == {"sold"}
        assert {each.state for each in (await session.view()).turns} == {"completed"}
        assert (await session.messages()).items


async def test_what_the_model_gives_to_the_background_is_told_masked(runtime: Runtime) -> None:
    """A11: titles, groups, arguments and prompts; what is run gets its arguments as they were said."""
    dug: list[str] = []

    def dig(where: str) -> str:
        dug.append(where)
        return "dug"

    spawn = {"tool": "dig", "args": {"where": VALUE}, "title": f"Dig {VALUE}", "group": VALUE}
    later = {**spawn, "schedule": "in 3 hours"}
    steps = [call("register"), call("spawn_background", spawn), call("spawn_background", later)]
    prompt = {"prompt": f"Dig with {VALUE}.", "wait_seconds": 0, "result_schema": {"type": "object", "title": VALUE}}
    model = scripted(*steps, call("run_sub_session", prompt), *["Well."] * 9)
    tools = [register, Tool(dig, metadata=public.hints(read_only=True))]
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        [task] = [each for each in await session.tasks() if each.tool == "dig"]
        await outlast.tasks.wait(task.id, seconds=20)
        assert dug == [VALUE]
        await session.settled()
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.get(session.id)
        tasks = [{**each.model_dump(), "args": None} for each in await session.tasks()]
        made = [each.model_copy(update={"args": {}}) for each in (await outlast.schedules.list()).items]
        shown = [tasks, made, await events_of(session), await session.messages()]
        [child] = await outlast.sessions.list(parent=session.id)
        assert leaks(*shown, await events_of(child), await child.history()) == []


async def test_a_question_whose_schema_has_registered_words_is_asked_and_answered(runtime: Runtime) -> None:
    """A11, B8: the words of JSON Schema itself are nobody's."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}

    async def wonder_in_words() -> str:
        for word in ("string", "object", "required", "properties"):
            public.secret(word)
        return (await public.ask("What is it called?", schema))["title"]

    model = scripted("Nothing.", call("wonder_in_words"), "It asks.", "I see.")
    async with runtime(model, tools=[wonder_in_words]) as outlast:
        session = await outlast.sessions.create()
        task = await asked(outlast, session)
        assert task.request is not None
        assert task.request.schema_ == schema
        await outlast.tasks.reply(task.id, {"title": "Glomma"})
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "Glomma"
