"""Long results and raw output: seen in part, read in pieces."""

from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_core import from_json

import outlast as public
from outlast import Session
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from tests.support.models.asking import answer, asks
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session
from tests.support.turns.runtime import Runtime, wait_for_event


async def read_all(session: Session, steps: int) -> str:
    pieces: list[Any] = [await answer(session, f"q{each}") for each in range(steps)]
    return "".join(each["text"] for each in pieces)


async def test_a_result_over_64_kib_is_seen_in_part_and_read_in_pieces(runtime: Runtime) -> None:
    """A9: the view says how much there is and where to go on; the pieces are the whole."""
    whole = "".join(f"{number:07d} " for number in range(10_000))

    def survey() -> str:
        return whole

    def steps(messages: list[ModelMessage]) -> Any:
        returns: dict[str, Any] = dict(tool_returns(messages))
        if not returns:
            return call("survey", call_id="c1")
        last: dict[str, Any] = list(returns.values())[-1]
        if "next_offset" not in last:
            return "Read."
        asked: dict[str, Any] = {"id": "c1", "offset": last["next_offset"], "length": 90_000}
        return call("read_output", asked, call_id=f"q{len(returns) - 1}")

    async with runtime(ScriptedModel(steps), tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        view: Any = await answer(session, "c1")
        assert (view["truncated"], view["bytes_total"], view["next_offset"]) == (True, 80_000, len(view["text"]))
        rest = await read_all(session, 3)
        assert len(str((await answer(session, "q0"))["text"])) == 32 * 1024
        assert view["text"] + rest == whole


async def test_any_result_is_read_again(runtime: Runtime) -> None:
    """A9, D14: what was left out to fit the window, by the id that stands in its place; also in a fork."""

    def survey(place: str) -> Any:
        return {"place": place, "depths": list(range(2_000))} if place == "Po" else f"{place}: " + "water " * 1_000

    def steps(messages: list[ModelMessage]) -> Any:
        asked = last_user_text(messages)
        if asked.startswith("Read") and not tool_returns(messages[-1:]):
            return call("read_output", {"id": asked.removeprefix("Read "), "length": 32_768})
        surveyed = tool_returns(messages[-1:])
        return "Seen." if surveyed else call("survey", place=asked)

    model = ScriptedModel(steps)
    async with runtime(model, tools=[survey], context_window=6_000) as outlast:
        session = await outlast.sessions.create()
        first = (await session.ask("Po")).calls[0]
        second = (await session.ask("Elbe")).calls[0]
        for place in ("Rhine", "Oder", "Main"):
            await session.ask(place)
        [left_out] = [
            str(content) for id, content in tool_returns(model.requests[-1].messages).items() if id == first.call_id
        ]
        assert left_out.endswith(f"read_output(id={first.call_id!r}, what='result') reads them]")
        for each in (session, await outlast.sessions.fork(session.id)):
            read = (await each.ask(f"Read {first.call_id}")).calls[0]
            assert from_json(read.result["text"]) == survey("Po")
            assert (await each.ask(f"Read {second.call_id}")).calls[0].result["text"] == survey("Elbe")
        unknown = (await session.ask("Read call_unknown")).calls[0]
        assert (unknown.outcome, "There is no result of 'call_unknown'" in str(unknown.result)) == ("failed", True)
        other = await outlast.sessions.create()
        assert (await other.ask(f"Read {first.call_id}")).calls[0].outcome == "failed"


async def test_many_results_of_one_step_are_read_again(runtime: Runtime) -> None:
    """A9: also where the whole message is kept elsewhere, because it is too large for a row."""

    def survey(place: str) -> str:
        return f"{place}: " + "water " * 9_000

    places = [f"Place {number}" for number in range(6)]

    def steps(messages: list[ModelMessage]) -> Any:
        asked = last_user_text(messages)
        if tool_returns(messages[-1:]):
            return "Seen."
        if asked.startswith("Read"):
            return call("read_output", {"id": asked.removeprefix("Read "), "length": 32})
        return [call("survey", place=each) for each in places]

    async with runtime(ScriptedModel(steps), tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        made = (await session.ask("Go.")).calls
        assert len(made) == len(places)
        for each in made:
            read = (await session.ask(f"Read {each.call_id}")).calls[0]
            assert read.result["text"] == survey(each.args["place"])[:32]


async def test_raw_output_is_read_in_pieces(runtime: Runtime) -> None:
    """A9, A3: of a running task, by its id; the result stands beside it."""
    here = Checkpoint()

    async def survey() -> str:
        public.output("line one\nline two\n")
        await here()
        return "2.4 m"

    read = {"tool": "read_output", "id": "$task", "length": 9}
    model = asks(read, {**read, "offset": 9}, {"tool": "read_output", "id": "$task", "what": "result"})
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        while not (await outlast.tasks.output(task.id)).text:
            await wait_for_event(session, "task.created")
        await (await session.send("Read.")).outcome()
        await (await session.send("Read on.")).outcome()
        assert await answer(session) == {
            "text": "line one\n",
            "offset": 0,
            "characters_total": 18,
            "next_offset": 9,
        }
        assert await answer(session, "q1") == {"text": "line two\n", "offset": 9, "characters_total": 18}
        here.open()
        await session.settled()
        await (await session.send("And the result?")).outcome()
        assert await answer(session, "q2") == {"text": "2.4 m", "offset": 0, "characters_total": 5}
