"""When a turn fails: what is retried by itself, what is told, and how it goes on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ModelMessage

from outlast import TurnContext
from outlast.agents.messages import history
from outlast.errors import Conflict, TooManyRequests
from outlast.testing import ScriptedModel, call, error, gate, text, texts_seen, tool_returns
from tests.support.logs.histories import check_history, outline, return_of
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted


def too_long() -> ModelContextWindowExceededError:
    return ModelContextWindowExceededError("scripted", "too long")


def read(page: int) -> str:
    return f"page {page}: " + "word " * 400


async def test_a_transient_model_error_is_retried_three_times(runtime: Runtime) -> None:
    """D9: with backoff; the reader of a half-said answer is told to discard it."""
    model = scripted(error(503), error(429), [text("Half an ans"), error(500)], "Whole.")
    async with runtime(model) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Hi")
        assert (outcome.state, outcome.text) == ("completed", "Whole.")
        assert outline(await session.history()) == ["user: Hi", "text: Whole."]
        dropped = await events_of(session, "response.dropped")
        waits = [event.data["retry_in"] for event in dropped]
        assert waits == [0.001, 0.002, 0.004]
        assert "Half an ans" not in repr(await events_of(session))


async def test_a_model_that_stays_broken_fails_the_turn_and_retry_goes_on(runtime: Runtime) -> None:
    """D9: after the last try; one call goes on from the last committed message, and finished calls stay finished."""
    runs: list[int] = []

    def work() -> str:
        runs.append(1)
        return "worked"

    model = scripted(call("work", call_id="c1"), *[error(503)] * 4, "It worked.")
    async with runtime(model, tools=[work]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Work.")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"], outcome.error["is_retryable"]) == ("failed", "model_error", True)
        turn = await session.retry()
        assert (await turn.outcome()).text == "It worked."
        assert runs == [1]
        assert outline(await session.history()) == [
            "user: Work.",
            "call: work",
            "return: work (success)",
            "text: It worked.",
        ]
        assert [event.data["origin"] for event in await events_of(session, "turn.queued")] == ["user", "retry"]


async def test_tries_are_counted_anew_for_each_request(runtime: Runtime) -> None:
    """D9: a long turn may meet many short troubles."""

    def work() -> str:
        return "worked"

    steps = [step for _ in range(4) for step in (error(503), error(503), call("work"))]
    async with runtime(scripted(*steps, "Done."), tools=[work]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Work.")
        assert (outcome.state, outcome.text, len(outcome.calls)) == ("completed", "Done.", 4)


async def test_an_error_that_trying_again_cannot_help_fails_at_once(runtime: Runtime) -> None:
    """D9: wrong keys stay wrong."""
    model = scripted(error(401))
    async with runtime(model) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Hi")
        assert outcome.state == "failed"
        assert len(model.requests) == 1


async def test_only_a_failed_or_stopped_turn_can_be_retried(runtime: Runtime) -> None:
    """D9: and only when nothing runs."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("Fine.")])) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(Conflict):
            await session.retry()
        sent = await session.send("Hi")
        await here.reached()
        with pytest.raises(Conflict):
            await session.retry()
        here.open()
        await sent.outcome()
        with pytest.raises(Conflict):
            await session.retry()


async def test_retry_of_a_stopped_turn_asks_the_model_to_continue(runtime: Runtime) -> None:
    """D9: what it said stays; a notice of the runtime asks for the rest."""
    here = Checkpoint()
    async with runtime(scripted([text("One,"), gate(here), text("never")], "two.")) as outlast:
        session = await outlast.sessions.create()
        await session.send("Count.")
        await here.reached()
        await session.stop()
        turn = await session.retry()
        assert (await turn.outcome()).text == "two."
        seen = texts_seen(await session.history())
        assert len(seen) == 2
        assert seen[1].startswith("<runtime_notice>")
        await check_providers(await session.history())


async def test_a_silent_model_ends_the_turn(runtime: Runtime) -> None:
    """D9, P4: no byte for the idle time; retryable, nothing of the half answer is kept."""
    never = asyncio.Event()
    model = scripted([text("Hm"), gate(never)], "Here.")
    async with runtime(model, model_idle_timeout=timedelta(milliseconds=50)) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Hi")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "idle_timeout")
        assert outline(await session.history()) == ["user: Hi"]
        assert (await (await session.retry()).outcome()).text == "Here."


async def test_a_slow_tool_is_not_a_silent_model(runtime: Runtime) -> None:
    """D9: the idle time counts only while a request is open."""
    passed = asyncio.Event()

    async def work() -> str:
        asyncio.get_running_loop().call_later(0.09, passed.set)
        await passed.wait()
        return "slow but sure"

    model = scripted(call("work"), "Done.")
    async with runtime(model, tools=[work], model_idle_timeout=timedelta(milliseconds=60)) as outlast:
        assert (await (await outlast.sessions.create()).ask("Work.")).text == "Done."


async def test_the_limit_of_model_requests_and_going_on_after_it(runtime: Runtime) -> None:
    """D9: `turn_limit`; a retry continues where it stopped, with every result kept."""
    runs: list[int] = []

    def work() -> int:
        runs.append(1)
        return len(runs)

    model = scripted(*[call("work")] * 4, "Done.")
    async with runtime(model, tools=[work], max_requests_per_turn=3) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Work.")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "turn_limit")
        assert len(model.requests) == 3
        check_history(await session.history())
        assert (await (await session.retry()).outcome()).text == "Done."
        assert len(runs) == 4
        assert list(tool_returns(await session.history()).values()) == [1, 2, 3, 4]


async def test_running_turns_per_owner_are_limited_and_the_rest_wait_in_order(runtime: Runtime) -> None:
    """D13: two at once, the next ones say their place, the one too many is refused and stores nothing."""
    here = Checkpoint()
    running: list[int] = []
    most: list[int] = []

    async def step() -> None:
        running.append(1)
        most.append(len(running))
        await here()
        running.pop()

    model = ScriptedModel(lambda _: [gate(step), text("Done.")])
    async with runtime(model, max_turns_per_owner=2, max_queued_turns_per_owner=3) as outlast:
        sessions = [await outlast.sessions.create() for _ in range(6)]
        for session in sessions[:5]:
            await session.send("Work.")
        await here.reached()
        places = [(await events_of(each, "turn.queued"))[0].data.get("place") for each in sessions[:5]]
        assert places == [None, None, 1, 2, 3]
        with pytest.raises(TooManyRequests):
            await sessions[5].send("One too many.")
        assert await sessions[5].inbox() == []
        assert (
            await (await outlast.owned_by("ada").create()).ask("I am not limited by them.", wait=0.05)
        ).is_over is False
        async with asyncio.timeout(20):
            while len(most) < 3:  # noqa: ASYNC110 - its turn is on its way
                await asyncio.sleep(0.01)
        here.open()
        for session in sessions[:5]:
            assert (await session.settled()) is not None
        assert max(most) == 3
        assert [(await event_types(each))[-1] for each in sessions[:5]] == ["turn.completed"] * 5


async def test_history_over_the_window_is_shortened_for_the_model_only(runtime: Runtime) -> None:
    """D14: oldest results first, calls stay with their results, stored history is untouched, and it is said."""
    model = scripted(*[call("read", page=page, call_id=f"c{page}") for page in range(6)], "Read.")
    async with runtime(model, tools=[read], context_window=2_000) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Read all.")).text == "Read."
        last = model.requests[-1].messages
        check_history(last)
        kept = ["word" in str(return_of(f"c{page}", last).content) for page in range(6)]
        assert not kept[0]
        assert kept[-1]
        assert kept == sorted(kept), "the oldest go first"
        assert all("word" in str(content) for content in tool_returns(await session.history()).values())
        told = await events_of(session, "history.compacted")
        assert told
        assert told[0].data["reason"] == "window"
        assert told[0].data["characters_after"] < told[0].data["characters_before"]


async def test_small_histories_are_left_alone(runtime: Runtime) -> None:
    """D14: a byte-stable prefix, so that provider caches hit."""
    model = scripted(*[call("read", page=page, call_id=f"c{page}") for page in range(3)], "Read.")
    async with runtime(model, tools=[read], context_window=100_000) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Read all.")
        assert await events_of(session, "history.compacted") == []
        for earlier, later in zip(model.requests, model.requests[1:], strict=False):
            sent = [repr(part) for message in earlier.messages for part in message.parts]
            then = [repr(part) for message in later.messages for part in message.parts]
            assert then[: len(sent)] == sent


async def test_a_provider_that_says_too_long_makes_it_shorter_once(runtime: Runtime) -> None:
    """D14: also without a known window; the second refusal fails the turn, retryable."""
    model = scripted(
        *[call("read", page=page, call_id=f"c{page}") for page in range(3)],
        error(too_long()),
        "Read.",
        error(too_long()),
    )
    async with runtime(model, tools=[read]) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Read all.")).text == "Read."
        assert "word" not in str(return_of("c0", model.requests[-1].messages).content)
        (told,) = await events_of(session, "history.compacted")
        assert told.data["reason"] == "refused_as_too_long"


async def test_too_long_twice_fails_the_turn(runtime: Runtime) -> None:
    """D14: once, not forever."""
    model = scripted(error(too_long()), error(too_long()))
    async with runtime(model) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Hi")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "context_too_long")


async def test_a_tool_call_with_bad_arguments_is_the_models_to_repair(runtime: Runtime) -> None:
    """A2: pydantic-ai's own validation, unchanged."""
    model = scripted(call("read", '{"page": "first"}', call_id="c1"), call("read", page=1, call_id="c2"), "Read.")
    async with runtime(model, tools=[read]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Read.")
        assert [each.outcome for each in outcome.calls] == ["retried", "success"]
        check_history(await session.history())


async def test_arguments_that_stay_bad_fail_the_turn_and_leave_nothing_open(runtime: Runtime) -> None:
    """A2, D9: the sibling that was running is settled truthfully; the turn can be retried."""
    here = Checkpoint()

    async def work() -> str:
        await here()
        return "worked"

    bad = call("read", '{"page": "first"}')
    model = scripted(bad, [bad, call("work", call_id="c9")], "Sorry.")
    async with runtime(model, tools=[read, work]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Read.")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "model_misbehaved")
        check_history(await session.history())
        here.open()
        assert (await (await session.retry()).outcome()).text == "Sorry."
        await check_providers(await session.history())


async def test_words_that_no_store_takes_are_kept_without_what_it_does_not_take(runtime: Runtime) -> None:
    """P4: the answer as it is told is the answer as it is stored."""
    async with runtime(scripted("a lone \ud800 surrogate", "Fine again.")) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Hi")).text == "a lone \ufffd surrogate"
        assert "a lone \ufffd surrogate" in str(await session.history())
        assert (await session.ask("Again")).text == "Fine again."


async def test_an_answer_that_cannot_be_written_fails_the_turn_and_hangs_nobody(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: whatever cannot be written, the turn ends; the next message works."""

    def make_plain(message: ModelMessage) -> None:
        raise ValueError("has no form that can be stored")

    monkeypatch.setattr(history, "make_plain", make_plain)
    async with runtime(scripted("a lone \ud800 surrogate", "Fine again.")) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Hi")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "internal_error")
        assert (await session.ask("Again")).text == "Fine again."
        check_history(await session.history())


async def test_an_agent_that_cannot_run_fails_the_turn_with_a_reference(runtime: Runtime) -> None:
    """D9, A11: what is ours to know stands in the log, not in the answer."""
    agent = Agent(scripted("never"), name="agent")

    @agent.instructions
    def instructions() -> str:  # pyright: ignore[reportUnusedFunction]
        raise RuntimeError("secret internals")

    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Hi")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "internal_error")
        assert outcome.error["reference"] in outcome.error["message"]
        assert "secret internals" not in repr(await events_of(session))


async def test_a_turn_that_cannot_begin_fails_once_and_keeps_its_message(runtime: Runtime) -> None:
    """D9, P4: its message stands in history, its sender is answered, and one call tries again."""
    is_up = asyncio.Event()

    @asynccontextmanager
    async def deps(context: TurnContext) -> AsyncGenerator[None]:
        if not is_up.is_set():
            raise RuntimeError("the service is down")
        yield None

    async with runtime(scripted("Hello."), deps=deps) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Hi")
        outcome = await sent.outcome()
        assert outcome.state == "failed"
        await session.settled()
        assert (await event_types(session)).count("turn.failed") == 1
        assert await session.inbox() == []
        is_up.set()
        turn = await session.retry()
        assert (await turn.outcome()).text == "Hello."
        assert outline(await session.history()) == ["user: Hi", "text: Hello."]


def _missing(context: TurnContext) -> Any:
    raise KeyError("a setting that is not there")


@asynccontextmanager
async def _cancelling(context: TurnContext) -> AsyncGenerator[None]:
    raise asyncio.CancelledError("by a scope of its own")
    yield


@pytest.mark.parametrize("deps", [_missing, _cancelling])
async def test_deps_that_cannot_be_opened_fail_the_turn(runtime: Runtime, deps: Any) -> None:
    """P4, A2: whether the factory raises when it is called, or what it gives cancels itself: nobody waits for ever."""
    async with runtime(scripted("Hello."), deps=deps) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("hi")).outcome(wait=20)
        assert outcome.state == "failed"
        assert (await event_types(session)).count("turn.started") == 1
