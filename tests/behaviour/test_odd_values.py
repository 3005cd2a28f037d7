"""Odd things that tools and models say: each is that call's own affair, and everything can be read afterwards."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from itertools import count, product
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent, Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models import StreamedResponse
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

import outlast
from outlast import Outlast, Session, hints
from outlast.store import tables
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call, reasoning, reply, text
from tests.support.logs.histories import check_history, return_of
from tests.support.turns.runtime import Runtime, events_of, scripted

HUGE = 2**20000
LONG = "".join(map(chr, Random(1).choices(range(0x100, 0x3000), k=9_000)))
"""No index takes it, and it cannot be made shorter."""
IN_BACKGROUND = hints(budget=0.01)


class Loud:
    def __repr__(self) -> str:
        raise RuntimeError("cannot be shown")

    __str__ = __repr__


class Sly(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("cannot be read")


async def read_all(served: Outlast[Any, Any], session: Session) -> None:
    """Every way in which what is stored is read."""
    assert await events_of(session)
    assert (await session.export())["messages"]
    assert (await session.turns()).items
    assert (await session.messages()).items
    assert await session.snapshot()
    assert await session.result()
    assert await served.sessions.list()
    await served.tasks.list()
    async with served.events_of("local", follow=False) as feed:
        assert [event async for event in feed]


@pytest.mark.parametrize("metadata", [None, IN_BACKGROUND], ids=["in the turn", "in the background"])
@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (HUGE, "[an integer of about 6021 digits]"),
        ({"deep": [HUGE, math.nan]}, {"deep": ["[an integer of about 6021 digits]", None]}),
        (Loud(), "[a Loud that cannot be shown: RuntimeError]"),
        ("\ud83d\x00", "\ufffd\ufffd"),
    ],
    ids=range(4),
)
async def test_an_odd_value_is_read_back_in_every_way(runtime: Runtime, metadata: Any, value: Any, seen: Any) -> None:
    """A2, G3: its session can be read, and so can every list in which it or its task stands."""

    async def work() -> Any:
        if metadata is not None:
            await asyncio.sleep(0.03)
        return value

    model = scripted(call("work", call_id="c1"), "Done.", "Heard.")
    async with runtime(model, tools=[Tool(work, metadata=metadata)]) as served:
        session = await served.sessions.create()
        await session.ask("Go.")
        await session.settled()
        if metadata is None:
            assert return_of("c1", await session.history()).content == seen
        else:
            (task,) = await served.tasks.list()
            assert (task.state.value, task.result) == ("succeeded", seen)
        await read_all(served, session)


@pytest.mark.parametrize("label", ["\ud83d\x00", Loud(), HUGE], ids=range(3))
async def test_a_background_call_is_not_failed_by_what_it_says_of_itself(runtime: Runtime, label: Any) -> None:
    """B3: progress and names of files are told as well as they can be."""

    async def work() -> str:
        outlast.progress(label, math.inf, unit=label, label=label)
        outlast.artifact(label, b"x", label)
        await asyncio.sleep(0.03)
        outlast.progress(1, 2, label=label)
        return "worked"

    model = scripted(call("work"), "Done.", "Heard.")
    async with runtime(model, tools=[Tool(work, metadata=IN_BACKGROUND)]) as served:
        session = await served.sessions.create()
        await session.ask("Go.")
        await session.settled()
        (task,) = await served.tasks.list()
        assert (task.state.value, task.result) == ("succeeded", "worked")
        assert task.progress is not None
        assert (task.progress["current"], task.progress["total"]) == (1, 2)
        await read_all(served, session)


@pytest.mark.parametrize("metadata", [{"x": [object(), HUGE, math.nan]}, Loud()], ids=range(2))
async def test_odd_metadata_of_a_result_does_not_fail_the_turn(runtime: Runtime, metadata: Any) -> None:
    """A2: it goes with the result as well as it can."""

    def work() -> Any:
        content: Any = ["and \ud83d more", {"x": HUGE}, Loud()]
        return ToolReturn("worked", content=content, metadata=metadata)

    async with runtime(scripted(call("work", call_id="c1"), "Done."), tools=[work]) as served:
        session = await served.sessions.create()
        outcome = await session.ask("Go.")
        assert (outcome.state, outcome.text) == ("completed", "Done.")
        assert return_of("c1", await session.history()).content == "worked"
        await read_all(served, session)


@pytest.mark.parametrize("metadata", [None, IN_BACKGROUND], ids=["in the turn", "in the background"])
@pytest.mark.parametrize("kind", [ToolFailed, ModelRetry])
@pytest.mark.parametrize("odd", [HUGE, {"a": Loud()}, Loud(), Sly(a=1), "\ud83d\x00", LONG, count], ids=range(7))
async def test_an_odd_message_of_a_failure_is_the_calls_own(
    runtime: Runtime, metadata: Any, kind: type[Exception], odd: Any
) -> None:
    """A5: the call has failed, its turn has not."""

    async def work() -> Any:
        if metadata is not None:
            await asyncio.sleep(0.03)
        raise kind(odd() if odd is count else odd)

    model = scripted(call("work", call_id="c1"), "Done.", "Heard.")
    async with runtime(model, tools=[Tool(work, metadata=metadata)]) as served:
        session = await served.sessions.create()
        assert (await session.ask("Go.")).state == "completed"
        await session.settled()
        if metadata is None:
            said = return_of("c1", await session.history())
            assert said.outcome in ("failed", "retried")
            assert isinstance(said.content, str)
            assert odd != LONG or LONG in said.content
        else:
            assert [task.state.value for task in await served.tasks.list()] == ["failed"]
        check_history(await session.history())
        await read_all(served, session)


async def test_a_character_in_two_halves_is_told_whole(runtime: Runtime) -> None:
    """E2: in words, reasoning and arguments; a half that stays alone is marked."""
    odd = [reasoning("deep \ud83d\ude00", chunk=1), text("so \ud83d\ude00 it \ud83d", chunk=1)]
    args = '{"given":"\ud83d\ude00"}'
    model = scripted([*odd, call("work", args, call_id="c1", chunk=1)], text("\ud83d\ude00", chunk=1))

    def work(given: str) -> str:
        return given

    async with runtime(model, tools=[work]) as served:
        session = await served.sessions.create()
        outcome = await session.ask("Go.")
        assert (outcome.state, outcome.reasoning) == ("completed", "deep 😀")
        assert outcome.text.endswith("😀")
        assert return_of("c1", await session.history()).content == "😀"
        deltas = "".join(event.data["text"] for event in await events_of(session, "part.delta"))
        assert "so 😀 it \ufffd" in deltas
        await read_all(served, session)


@pytest.mark.parametrize("call_id", ["a\x00b", "a\ud83db", 'quoted "id"', LONG], ids=range(4))
async def test_an_odd_call_id_names_the_call_everywhere(runtime: Runtime, call_id: str) -> None:
    """B1: in the turn and in the background; on both stores."""

    async def work() -> str:
        outlast.output("said")
        await asyncio.sleep(0.03)
        return "worked"

    model = scripted([call("work", call_id=call_id), call("sound", call_id="c2")], "Done.", "Heard.")
    tools = [Tool(work, metadata=IN_BACKGROUND), Tool(lambda: "sound", name="sound")]
    async with runtime(model, tools=tools) as served:
        session = await served.sessions.create()
        outcome = await session.ask("Go.")
        assert outcome.state == "completed"
        await session.settled()
        (task,) = await served.tasks.list()
        assert (task.state.value, task.result) == ("succeeded", "worked")
        assert (await served.tasks.output(task.id)).text == "said"
        started = {event.data["call_id"] for event in await events_of(session, "call.started")}
        assert started == {event.data["call_id"] for event in await events_of(session, "call.ended")}
        assert task.call_id in started
        await read_all(served, session)


@pytest.mark.parametrize("call_id", ["a\x00b", "a\ud83db"], ids=range(2))
async def test_an_odd_call_id_beside_a_registered_secret(runtime: Runtime, call_id: str) -> None:
    """B1, A11: what is stored is then another message than the one whose calls are run; their ids are the same."""

    def learn() -> None:
        outlast.secret("hunter2-hunter2")

    async def work() -> str:
        outlast.output("said")
        await asyncio.sleep(0.03)
        return "worked"

    odd = [text("It is hunter2-hunter2."), call("work", call_id=call_id)]
    tools = [learn, Tool(work, metadata=IN_BACKGROUND)]
    async with runtime(scripted(call("learn", call_id="c1"), odd, "Done.", "Heard."), tools=tools) as served:
        session = await served.sessions.create()
        assert (await session.ask("Go.")).state == "completed"
        await session.settled()
        (task,) = await served.tasks.list()
        assert (task.state.value, (await served.tasks.output(task.id)).text) == ("succeeded", "said")
        started = {event.data["call_id"] for event in await events_of(session, "call.started")}
        assert started == {event.data["call_id"] for event in await events_of(session, "call.ended")}
        assert task.call_id in started
        check_history(await session.history())
        await read_all(served, session)


async def test_calls_whose_odd_ids_become_one_are_told_apart(runtime: Runtime) -> None:
    """B1: as calls that a model gave the same id."""
    calls = [call("work", call_id=f"a{odd}", number=number) for number, odd in enumerate(("\x00", "\ufffd"))]

    def work(number: int) -> int:
        return number

    async with runtime(scripted(calls, "Done."), tools=[work]) as served:
        session = await served.sessions.create()
        assert (await session.ask("Go.")).state == "completed"
        check_history(await session.history())
        ended = [event.data["part"]["content"] for event in await events_of(session, "call.ended")]
        assert sorted(ended) == [0, 1]
        await read_all(served, session)


async def test_odd_counts_of_a_provider_are_counted_as_far_as_they_go(runtime: Runtime) -> None:
    """E5: no number that a column does not hold."""
    odd = RequestUsage(input_tokens=10**30, output_tokens=-5)
    async with runtime(scripted(reply("Done.", usage=odd))) as served:
        session = await served.sessions.create()
        assert (await session.ask("Go.")).state == "completed"
        assert (await served.usage_of("local")).today.output_tokens == 0


def odd_answers() -> dict[str, ModelResponse]:
    said, details = [TextPart("Done.")], {"cost": HUGE}
    counts = RequestUsage(input_tokens=HUGE, output_tokens=7, details={"a": HUGE})
    never: Any = "never"
    nothing: Any = None
    five: Any = 5
    return {
        "cost": ModelResponse(parts=said, provider_details=details),
        "tokens": ModelResponse(parts=said, usage=counts),
        "price": ModelResponse(parts=said, usage=RequestUsage(cost=Decimal("1e999999"))),
        "no price": ModelResponse(parts=said, usage=RequestUsage(cost=Decimal("NaN"))),
        "finish": ModelResponse(parts=said, finish_reason=never),
        "no text": ModelResponse(parts=[TextPart(nothing), *said], usage=RequestUsage(input_tokens=1)),
        "no words": ModelResponse(parts=[ThinkingPart(five), *said], usage=RequestUsage(input_tokens=1)),
        "id": ModelResponse(parts=said, provider_response_id=five, usage=RequestUsage(input_tokens=1)),
    }


@pytest.mark.parametrize("name", odd_answers())
async def test_an_odd_answer_of_a_model_is_an_answer(runtime: Runtime, name: str) -> None:
    """A2, E5: what its type does not allow is made so, and the turn ends as the model meant it."""
    answers = [odd_answers()[name], ModelResponse(parts=[TextPart("Again.")])]

    class Odd(FunctionModel):
        async def request(self, *_: Any, **__: Any) -> ModelResponse:
            return answers.pop(0)

    agent = Agent(Odd(lambda messages, info: answers[0]), name="agent")
    async with runtime(agent=agent) as served:
        session = await served.sessions.create()
        outcome = await session.ask("Go.")
        assert (outcome.state, outcome.text, outcome.error) == ("completed", "Done.", None)
        assert (await session.ask("Go on.")).text == "Again."
        await read_all(served, session)
        check_history(await session.history())


async def test_a_streamed_text_that_is_none_is_told_as_nothing(runtime: Runtime) -> None:
    """A2."""
    nothing: Any = None

    class Odd(ScriptedModel):
        """Its first part has no text."""

        @asynccontextmanager
        async def request_stream(self, *args: Any, **more: Any) -> AsyncGenerator[StreamedResponse]:
            async with super().request_stream(*args, **more) as stream:
                begun = stream._get_event_iterator  # pyright: ignore[reportPrivateUsage]

                async def events() -> AsyncIterator[Any]:
                    yield stream._parts_manager.handle_part(vendor_part_id="none", part=TextPart(nothing))  # pyright: ignore[reportPrivateUsage]
                    async for event in begun():
                        yield event

                stream._get_event_iterator = events  # pyright: ignore[reportPrivateUsage]
                yield stream

    async with runtime(agent=Agent(Odd(["Done."]), name="agent")) as served:
        session = await served.sessions.create()
        assert (await session.ask("Go.")).text == "Done."
        await read_all(served, session)


_COLUMNS: tuple[sa.Column[Any], ...] = (
    *(
        tables.events.c.data,
        tables.messages.c.body,
        tables.inputs.c.body,
        tables.sessions.c.metadata,
        tables.tasks.c.settled,
    ),
    *(
        tables.tasks.c.result,
        tables.tasks.c.artifacts,
        tables.tasks.c.progress,
        tables.tasks.c.spec,
        tables.turns.c.usage,
    ),
)


async def test_a_row_that_cannot_be_read_does_not_take_its_page_along(runtime: Runtime) -> None:
    """G3: it says of itself that it cannot be read."""

    async def work() -> str:
        await asyncio.sleep(0.03)
        return "worked"

    model = scripted(call("work"), "Done.", "Heard.")
    async with runtime(model, tools=[Tool(work, metadata=IN_BACKGROUND)]) as served:
        session = await served.sessions.create()
        await session.ask("Go.")
        await session.settled()
        for column, broken in product(_COLUMNS, ("", '{"half":', "[" * 300 + "]" * 300, "9" * 5_000)):

            def damage(unit: Unit, column: sa.Column[Any] = column, broken: str = broken) -> None:
                unit.connection.execute(sa.update(column.table).values({column.name: broken}))

            await served.database.transaction(damage, name="damage")
            await read_all(served, session)


@pytest.mark.parametrize("kind", ["request", "response"])
async def test_a_conversation_goes_on_over_messages_that_cannot_be_read(runtime: Runtime, kind: str) -> None:
    """G3: neither a turn nor whoever waits for it hangs on them, and providers take what is left."""

    def work() -> str:
        return "worked"

    async with runtime(scripted(call("work"), "Done.", "Next."), tools=[work]) as served:
        session = await served.sessions.create()
        await session.ask("Go.")

        def damage(unit: Unit) -> None:
            of_kind = sa.update(tables.messages).where(tables.messages.c.kind == kind)
            unit.connection.execute(of_kind.values(body='{"half":'))

        await served.database.transaction(damage, name="damage")
        outcome = await session.ask("More.")
        assert (outcome.state, outcome.text) == ("completed", "Next.")
        history = await session.history()
        assert "cannot be read" in str(history)
        check_history(history)
        await read_all(served, session)
