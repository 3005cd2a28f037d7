"""The scripted model, driven by real agents."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRun, ModelHTTPError, ModelRateLimitError, ModelSettings
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolCallPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from outlast.testing import (
    ScriptedModel,
    ScriptExhausted,
    Step,
    call,
    calls,
    delay,
    error,
    gate,
    last_user_text,
    reasoning,
    reply,
    text,
    texts_seen,
    tool_returns,
)


def searching(model: ScriptedModel) -> Agent[None, str]:
    """An agent with one tool, `search`, that repeats its query in capitals."""
    agent = Agent(model)

    async def search(query: str) -> str:
        return query.upper()

    agent.tool_plain(search)
    return agent


async def streamed(model: ScriptedModel) -> AsyncIterator[object]:
    """The events of one request sent straight to the model."""
    async with model.request_stream(asking("hello"), None, ModelRequestParameters()) as response:
        async for event in response:
            yield event


def asking(words: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(words)])]


async def test_a_script_drives_an_agent_through_a_tool_to_its_answer():
    model = ScriptedModel([[reasoning("let me look"), call("search", query="oslo")], "Found it."])
    result = await searching(model).run("where?")
    assert result.output == "Found it."
    first = result.all_messages()[1]
    assert [type(part) for part in first.parts] == [ThinkingPart, ToolCallPart]
    assert list(tool_returns(result.all_messages()).values()) == ["OSLO"]


async def test_a_streamed_run_gives_the_same_messages_as_a_plain_one():
    script: list[Step] = [
        [reasoning("hm", chunk=1), call("search", call_id="c1", chunk=3, query="oslo")],
        [text("Found it: ", chunk=4), text("Oslo")],
    ]
    plain = await searching(ScriptedModel(script)).run("where?")
    async with searching(ScriptedModel(script)).run_stream("where?") as streaming:
        assert await streaming.get_output() == plain.output == "Found it: Oslo"
        responses = [m for m in streaming.all_messages() if isinstance(m, ModelResponse)]
    expected = [m for m in plain.all_messages() if isinstance(m, ModelResponse)]
    assert [r.parts for r in responses] == [r.parts for r in expected]
    assert [r.finish_reason for r in responses] == ["tool_call", "stop"]
    assert [r.usage for r in responses] == [r.usage for r in expected]


async def test_text_arrives_in_chunks_and_neighbouring_texts_are_one_part():
    events = [event async for event in streamed(ScriptedModel([[text("abcde", chunk=2), "fg"]]))]
    starts = [e.part for e in events if isinstance(e, PartStartEvent)]
    deltas = [e.delta for e in events if isinstance(e, PartDeltaEvent)]
    ends = [e.part for e in events if isinstance(e, PartEndEvent)]
    assert starts == [TextPart("ab")]
    assert deltas == [TextPartDelta("cd"), TextPartDelta("e"), TextPartDelta("fg")]
    assert ends == [TextPart("abcdefg")]


async def test_text_after_a_call_is_a_part_of_its_own():
    model = ScriptedModel([["before", call("search", call_id="c1"), call("search", call_id="c2"), "after"]])
    response = await model.request(asking("hello"), None, ModelRequestParameters())
    assert [part.part_kind for part in response.parts] == ["text", "tool-call", "tool-call", "text"]


async def test_arguments_of_a_call_arrive_in_chunks():
    model = ScriptedModel([call("search", call_id="c1", chunk=8, query="oslo")])
    events = [event async for event in streamed(model)]
    (start,) = [e for e in events if isinstance(e, PartStartEvent)]
    assert start.part == ToolCallPart("search", '{"query"', tool_call_id="c1")
    deltas = [e.delta for e in events if isinstance(e, PartDeltaEvent)]
    assert [d.args_delta for d in deltas if isinstance(d, ToolCallPartDelta)] == [':"oslo"}']


async def test_any_argument_name_and_broken_json_can_be_sent():
    steps: list[Step] = [[call("pump", {"pause": 3, "call_id": "x"}, tool="y"), call("pump", '{"cut')]]
    response = await ScriptedModel(steps).request(asking("hello"), None, ModelRequestParameters())
    first, second = response.parts
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert first.args_as_dict() == {"pause": 3, "call_id": "x", "tool": "y"}
    assert second.args == '{"cut'
    with pytest.raises(TypeError, match="not both"):
        call("pump", "{}", speed=1)


async def test_call_ids_are_kept_when_given_and_new_in_each_play_otherwise():
    step: Step = [call("search", call_id="c1", query="a"), *calls("search", {"query": "b"}, {"query": "c"})]
    model = ScriptedModel(lambda messages: "done" if len(messages) > 2 else step)
    seen: list[str] = []
    for _ in range(2):
        result = await searching(model).run("go")
        seen += tool_returns(result.all_messages())
        assert list(tool_returns(result.all_messages()).values()) == ["A", "B", "C"]
    assert seen[0] == seen[3] == "c1"
    assert len(set(seen)) == 5


async def test_a_gate_stops_the_stream_at_an_exact_point():
    """Nothing after the gate is seen before it opens, and no time is spent guessing."""
    opened = asyncio.Event()
    events = streamed(ScriptedModel([["Hel", gate(opened), "lo"]]))
    assert isinstance(await anext(events), PartStartEvent)
    await anext(events)  # pydantic-ai announces the final result
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    assert not waiting.done()
    opened.set()
    event = await waiting
    assert isinstance(event, PartDeltaEvent)
    assert event.delta == TextPartDelta("lo")
    async for _ in events:
        pass


async def test_a_gate_as_pause_holds_a_call_in_the_middle_of_its_arguments():
    reached, opened = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reached.set()
        await opened.wait()

    model = ScriptedModel([call("search", chunk=8, pause=gate(hold), query="oslo"), "done"])
    running = asyncio.ensure_future(searching(model).run("go"))
    await reached.wait()
    assert not running.done()
    opened.set()
    assert (await running).output == "done"


async def test_a_run_cancelled_at_a_gate_keeps_what_was_said_before_it():
    reached = asyncio.Event()

    async def never() -> None:
        reached.set()
        await asyncio.Event().wait()

    agent = searching(ScriptedModel([["partly", gate(never), " never"]]))
    async with agent.iter("go") as run:
        reading = asyncio.ensure_future(read_first_response(run))
        await reached.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        last = run.all_messages()[-1]
    assert isinstance(last, ModelResponse)
    assert (last.state, last.text) == ("interrupted", "partly")


async def read_first_response(run: AgentRun[None, str]) -> None:
    async for node in run:
        if Agent.is_model_request_node(node):
            async with node.stream(run.ctx) as stream:
                async for _ in stream:
                    pass


async def test_a_stream_closed_by_its_reader_says_no_more():
    model = ScriptedModel([text("abcdef", chunk=1)])
    async with model.request_stream(asking("hello"), None, ModelRequestParameters()) as response:
        async for event in response:
            if isinstance(event, PartDeltaEvent):
                await response.cancel()
    assert (response.get().state, response.get().text) == ("interrupted", "ab")


async def test_closing_a_stream_from_elsewhere_ends_a_reader_held_at_a_gate():
    reached = asyncio.Event()

    async def never() -> None:
        reached.set()
        await asyncio.Event().wait()

    model = ScriptedModel([["said", gate(never), "unsaid"]])
    async with model.request_stream(asking("hello"), None, ModelRequestParameters()) as response:

        async def read() -> None:
            async for _ in response:
                pass

        reading = asyncio.ensure_future(read())
        await reached.wait()
        await response.cancel()
        await reading
    assert (response.get().state, response.get().text) == ("interrupted", "said")


async def test_a_delay_is_asked_of_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    model = ScriptedModel([[delay(5), text("abc", chunk=1, pause=0.5), delay(7), "d"]])
    response = await model.request(asking("hello"), None, ModelRequestParameters())
    assert response.text == "abcd"
    assert slept == [5, 0.5, 0.5, 7]


async def test_an_error_fails_its_request_and_the_next_step_follows():
    model = ScriptedModel([error(503, body="busy"), error(429, retry_after=2), "back"])
    agent = searching(model)
    with pytest.raises(ModelHTTPError) as unavailable:
        await agent.run("go")
    assert (unavailable.value.status_code, unavailable.value.body) == (503, "busy")
    with pytest.raises(ModelRateLimitError) as limited:
        async with agent.run_stream("go"):
            pass
    assert (limited.value.retry_after, limited.value.in_stream) == (2, False)
    assert (await agent.run("go")).output == "back"


async def test_an_error_in_the_middle_breaks_an_open_stream():
    events = streamed(ScriptedModel([["half", error(500), "never"]]))
    start = await anext(events)
    assert isinstance(start, PartStartEvent)
    assert start.part == TextPart("half")
    await anext(events)  # pydantic-ai announces the final result
    with pytest.raises(ModelHTTPError) as broken:
        await anext(events)
    assert (broken.value.status_code, broken.value.in_stream) == (500, True)


async def test_any_exception_can_be_the_error():
    class Broken(Exception):
        pass

    with pytest.raises(Broken):
        await searching(ScriptedModel([["half", error(Broken())]])).run("go")


async def test_a_script_counted_by_history_goes_on_in_a_new_process():
    """A fresh model object with the stored messages plays the step after the last stored response."""
    script: list[Step] = [call("search", call_id="c1", query="oslo"), "second", "third"]
    before = await searching(ScriptedModel(script, by="history")).run("go")
    stored = ModelMessagesTypeAdapter.validate_json(before.all_messages_json())
    after = await searching(ScriptedModel(script, by="history")).run("more", message_history=stored)
    assert (before.output, after.output) == ("second", "third")


async def test_a_function_decides_by_the_history_alone():
    async def script(messages: list[ModelMessage]) -> Step:
        if "c1" in tool_returns(messages):
            return f"{last_user_text(messages)}: {tool_returns(messages)['c1']}"
        return call("search", call_id="c1", query="oslo")

    assert (await searching(ScriptedModel(script)).run("where")).output == "where: OSLO"


@pytest.mark.parametrize("by", ["requests", "history"])
async def test_an_exhausted_script_names_the_request_without_a_step(by: str):
    model = ScriptedModel([call("search", query="a")], by="history" if by == "history" else "requests")
    with pytest.raises(ScriptExhausted, match=r"the script has no step 2: it has 1, .*" + by[:7]):
        await searching(model).run("go")


async def test_the_model_remembers_what_it_was_sent():
    model = ScriptedModel([call("search", query="oslo"), "done"], settings=ModelSettings(temperature=0.5))
    agent = Agent(model, instructions="Be brief.")

    async def search(query: str) -> str:
        return query

    agent.tool_plain(search)
    async with agent.run_stream("where?", model_settings=ModelSettings(max_tokens=9)) as streaming:
        await streaming.get_output()
    first, second = model.requests
    assert list(first.tools) == ["search"]
    assert first.settings == {"temperature": 0.5, "max_tokens": 9}
    assert first.instructions == "Be brief."
    assert first.is_streamed
    assert (len(first.messages), len(second.messages)) == (1, 3)
    assert texts_seen(second.messages) == ["where?"]
    assert list(tool_returns(second.messages).values()) == ["oslo"]


async def test_an_output_tool_is_called_like_any_other():
    class City(BaseModel):
        name: str

    model = ScriptedModel([call("final_result", name="Oslo")])
    assert (await Agent(model, output_type=City).run("go")).output == City(name="Oslo")
    assert list(model.requests[0].tools) == ["final_result"]


async def test_usage_is_what_the_reply_says_in_every_play():
    given = RequestUsage(input_tokens=100, output_tokens=7, cache_read_tokens=80)
    model = ScriptedModel(lambda _: reply("hi", usage=given, finish_reason="length"))
    for _ in range(2):
        result = await searching(model).run("go")
        assert (result.usage.input_tokens, result.usage.output_tokens) == (100, 7)
        assert result.usage.cache_read_tokens == 80
        assert result.response.finish_reason == "length"


async def test_usage_grows_with_the_text_when_not_given():
    small = await ScriptedModel(["x" * 4]).request(asking("y" * 4), None, ModelRequestParameters())
    large = await ScriptedModel(["x" * 40]).request(asking("y" * 40), None, ModelRequestParameters())
    assert (small.usage.input_tokens, small.usage.output_tokens) == (51, 1)
    assert (large.usage.input_tokens, large.usage.output_tokens) == (60, 10)


def test_user_texts_leave_out_everything_that_is_not_text():
    history = [*asking("one"), ModelResponse(parts=[TextPart("no")]), *asking("two")]
    assert texts_seen(history) == ["one", "two"]
    assert last_user_text(history) == "two"
    assert last_user_text([]) == ""


def test_a_chunk_has_at_least_one_character():
    with pytest.raises(ValueError, match="at least 1"):
        text("abc", chunk=0)
