"""A provider that counts its calls anew with each response: in one turn several calls have the same id."""

from typing import Any

from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Outlast, hints
from outlast.testing import ScriptedModel, call, last_user_text
from outlast.testing.step import Step
from tests.support.logs.histories import check_history
from tests.support.turns.runtime import Runtime, events_of, scripted

PATIENCE = 60.0


async def results(outlast: Outlast[Any, Any]) -> list[Any]:
    """What the model was given for each call of one turn, in order."""
    session = await outlast.sessions.create()
    outcome = await session.ask("Go.", wait=PATIENCE)
    assert outcome.state == "completed", outcome
    check_history(await session.history())
    return [event.data["part"]["content"] for event in await events_of(session, "call.ended")]


async def test_each_is_given_a_sub_session_of_its_own(runtime: Runtime) -> None:
    """C1: the second does not get the first one's answer again."""
    asked = iter(["one", "two"])

    def script(messages: list[ModelMessage]) -> Step:
        said = last_user_text(messages)
        if said != "Go.":
            return f"I am {said}."
        prompt = next(asked, None)
        return "Done." if prompt is None else call("run_sub_session", prompt=prompt, call_id="c1", wait_seconds=300)

    async with runtime(ScriptedModel(script)) as outlast:
        first, second = await results(outlast)
        assert (first["result"], second["result"]) == ("I am one.", "I am two.")
        assert first["session_id"] != second["session_id"]


async def test_each_sets_going_what_it_asks_for(runtime: Runtime) -> None:
    """B3, F1: a task for each, and a schedule for each."""

    async def double(number: int) -> int:
        return 2 * number

    spawned = [
        call("spawn_background", tool="double", args={"number": at}, wake="silent", call_id="c1") for at in (1, 2)
    ]
    planned = [call("schedule", text=f"say {at}", when="in 2 hours", call_id="c1") for at in (1, 2)]
    async with runtime(scripted(*spawned, *planned, "Done."), tools=[Tool(double)]) as outlast:
        first, second, *schedules = await results(outlast)
        ended = [await outlast.tasks.wait(each["task_id"], seconds=PATIENCE) for each in (first, second)]
        assert [each.result for each in ended] == [2, 4]
        assert [each["text"] for each in schedules] == ["say 1", "say 2"]


async def test_each_has_its_own_key_and_operation(runtime: Runtime) -> None:
    """P3, B8: services that deduplicate by the key do both; a call that is run later as a task keeps its own."""
    keys: list[str | None] = []

    async def pay() -> str:
        keys.append(public.idempotency_key())
        return "paid"

    async def order() -> str:
        async with public.external() as operation:
            assert operation.is_new
            return operation.task_id

    steps = [call("order", call_id="c1"), call("order", call_id="c1"), *[call("pay", call_id="c1")] * 2]
    tools = [Tool(pay, metadata=hints(approve=True)), Tool(order)]
    options: dict[str, Any] = {"public_url": "http://127.0.0.1:1"}
    async with runtime(scripted(*steps, *["Done."] * 9), tools=tools, **options) as outlast:
        first, second, *waiting = await results(outlast)
        assert first["result"] != second["result"]
        for each in waiting:
            await outlast.tasks.approve(each["task_id"])
            await outlast.tasks.wait(each["task_id"], seconds=PATIENCE)
        assert len({*keys}) == len(keys) == 2
