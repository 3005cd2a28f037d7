"""Long results and raw output: seen in part, read in pieces."""

from typing import Any

from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Session
from outlast.testing import ScriptedModel, call, tool_returns
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
