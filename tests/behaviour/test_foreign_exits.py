"""What an agent's code raises ends what it was run for: never the process, never another turn."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, Tool, ToolReturn
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from outlast import Event, TurnContext
from outlast.containment import Contained, ForeignExit
from outlast.testing import ScriptedModel, call
from outlast.values.redact import error_chain, last_line, redact
from outlast.wire.task_state import TaskState
from tests.support.logs.histories import check_history, return_of
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, ThreadGate, nth_event, parked_session
from tests.support.turns.runtime import Runtime, scripted


class Custom(BaseException):
    """What no library expects."""


RAISED: Sequence[Callable[[], BaseException]] = (
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    Custom,
    lambda: BaseExceptionGroup("several", [SystemExit(3)]),
)
NAMES = ["exit", "interrupt", "close", "cancel", "stop", "async_stop", "custom", "group"]


def leave() -> str:
    """As programs do."""
    sys.exit(7)


def tool_of(name: str, run: Callable[[], Any]) -> Tool[Any]:
    return Tool(run, name=name, takes_ctx=False)


def in_coroutine(raised: Callable[[], BaseException], here: Checkpoint | None = None) -> Callable[[], Any]:
    async def run() -> str:
        if here is not None:
            await here()
        raise raised()

    return run


def in_thread(raised: Callable[[], BaseException]) -> Callable[[], Any]:
    def run() -> str:
        raise raised()

    return run


def beside(raised: Callable[[], BaseException]) -> Callable[[], Any]:
    """In a coroutine that the tool starts."""

    async def run() -> str:
        return await asyncio.create_task(in_coroutine(raised)())

    return run


@pytest.mark.parametrize("place", [in_coroutine, in_thread, beside], ids=lambda each: each.__name__)
async def test_a_tool_fails_alone_whatever_it_raises(runtime: Runtime, place: Callable[..., Any]) -> None:
    """A5: those that are called beside it end as if nothing were."""

    async def fine() -> str:
        return "fine"

    tools = [tool_of(name, place(raised)) for name, raised in zip(NAMES, RAISED, strict=True)]
    calls = [call(each, call_id=each) for each in (*NAMES, "fine")]
    async with runtime(scripted(calls, "Most failed."), tools=[*tools, fine]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Try.")
        assert (outcome.state, outcome.text) == ("completed", "Most failed.")
        history = await session.history()
        check_history(history)
        for each in NAMES:
            part = return_of(each, history)
            assert (part.outcome, "internal error" in str(part.content)) == ("failed", True), each
        assert return_of("fine", history).content == "fine"


async def test_a_parked_call_fails_alone_whatever_it_raises(runtime: Runtime) -> None:
    """A5, B1: nobody cancelled it, so it is not told as cancelled."""
    here = Checkpoint()
    tools = [tool_of(name, in_coroutine(raised, here)) for name, raised in zip(NAMES, RAISED, strict=True)]
    model = ScriptedModel([[call(each) for each in NAMES], "They go on.", *["I see."] * len(NAMES)])
    async with runtime(model, tools=tools, budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure.")
        await nth_event(session, "task.created", len(NAMES))
        here.open()
        await nth_event(session, "task.ended", len(NAMES))
        ended = {task.tool: (task.state, (task.error or {})["kind"]) for task in await session.tasks()}
        assert ended == dict.fromkeys(NAMES, (TaskState.FAILED, "internal_error"))


async def test_a_parked_sync_call_fails_alone(runtime: Runtime) -> None:
    """A5, B1: a thread that ends in what no future takes still ends."""
    here = ThreadGate()

    def survey() -> str:
        here()
        raise StopIteration

    async with runtime(scripted(call("survey"), "It goes on.", "I see."), tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast, "Measure.")
        here.open()
        await nth_event(session, "task.ended", 1)
        (ended,) = await session.tasks()
        assert (ended.id, ended.state) == (task.id, TaskState.FAILED)


def from_deps(raised: Callable[[], BaseException]) -> dict[str, Any]:
    @asynccontextmanager
    async def deps(_: TurnContext) -> AsyncGenerator[None]:
        raise raised()
        yield

    return {"deps": deps, "agent": Agent(ScriptedModel(["Hello."]))}


def from_history(raised: Callable[[], BaseException]) -> dict[str, Any]:
    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        raise raised()

    return {"agent": Agent(ScriptedModel(["Hello."]), capabilities=[ProcessHistory(process)])}


def from_sync_history(raised: Callable[[], BaseException]) -> dict[str, Any]:
    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        raise raised()

    return {"agent": Agent(ScriptedModel(["Hello."]), capabilities=[ProcessHistory(process)])}


def from_output(raised: Callable[[], BaseException]) -> dict[str, Any]:
    async def finish(text: str) -> str:
        raise raised()

    return {"agent": Agent(ScriptedModel([call("final_result", text="x")]), output_type=finish)}


def from_instructions(raised: Callable[[], BaseException]) -> dict[str, Any]:
    async def instruct() -> str:
        raise raised()

    return {"agent": Agent(ScriptedModel(["Hello."]), instructions=instruct)}


def from_toolset(raised: Callable[[], BaseException]) -> dict[str, Any]:
    class Opening(FunctionToolset[Any]):
        async def __aenter__(self) -> Any:
            raise raised()

    return {"agent": Agent(ScriptedModel(["Hello."]), toolsets=[Opening()])}


@pytest.mark.parametrize(
    "agent_that_raises",
    [from_deps, from_history, from_sync_history, from_output, from_instructions, from_toolset],
    ids=lambda each: each.__name__,
)
async def test_a_turn_fails_alone_whatever_the_code_around_it_raises(
    runtime: Runtime, agent_that_raises: Callable[[Any], dict[str, Any]]
) -> None:
    """D9: dependencies, history processors, output functions, instructions, toolsets: once, and not for ever."""
    for each in RAISED:
        async with runtime(**agent_that_raises(each)) as outlast:
            session = await outlast.sessions.create()
            outcome = await session.ask("Hi")
            assert outcome.state == "failed", each
            assert outcome.error is not None


async def test_a_listener_that_exits_harms_nobody(runtime: Runtime) -> None:
    """P8."""

    def listener(_: Sequence[Event]) -> None:
        sys.exit()

    outlast = runtime(scripted("Hello."))
    outlast.listen(listener)
    async with outlast:
        assert (await (await outlast.sessions.create()).ask("Hi")).text == "Hello."


async def test_a_value_that_exits_when_it_is_read_harms_nobody(runtime: Runtime) -> None:
    """A5: the call did its work. Of a value what can be read without its own code is told, else that it cannot be."""

    class Sly(dict[str, Any]):
        def items(self) -> Any:
            sys.exit()

    class Mute:
        def __repr__(self) -> str:
            sys.exit()

    async def sly() -> Any:
        return Sly(a=1)

    async def sly_return() -> Any:
        return ToolReturn(Sly(a=Mute()))

    async def mute() -> Any:
        return Mute()

    calls = [call(name, call_id=name) for name in ("sly", "sly_return", "mute")]
    async with runtime(scripted(calls, "Done."), tools=[sly, sly_return, mute]) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Try.")).text == "Done."
        history = await session.history()
        returned = [return_of(each, history) for each in ("sly", "sly_return", "mute")]
        unseen = "[a Mute that cannot be shown: SystemExit]"
        assert [each.content for each in returned] == [{"a": 1}, {"a": unseen}, unseen]
        assert {each.outcome for each in returned} == {"success"}


async def wait_for_interrupt() -> None:
    """No statement of the tool raises it."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(KeyboardInterrupt())
    await future


async def wait_for_exit() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(SystemExit(3))
    await future


async def throw() -> None:
    def wait() -> Generator[None]:
        yield

    waiting = wait()
    next(waiting)
    waiting.throw(KeyboardInterrupt())


@pytest.mark.parametrize("waits", [wait_for_interrupt, wait_for_exit, throw])
async def test_an_exit_that_no_statement_raised_is_an_error_of_its_tool(
    runtime: Runtime, waits: Callable[[], Any]
) -> None:
    """A5: it is not taken for Ctrl-C."""
    async with runtime(scripted(call("go", call_id="c1"), "It failed."), tools=[tool_of("go", waits)]) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Try.")).text == "It failed."
        assert return_of("c1", await session.history()).outcome == "failed"


async def test_ctrl_c_keeps_its_meaning_and_its_handler(runtime: Runtime) -> None:
    """What the handler of the signal raises is no error of the code that it comes upon."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        async with runtime(scripted("Hello.")):
            with pytest.raises(KeyboardInterrupt), Contained():
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(ForeignExit), Contained():
                await wait_for_interrupt()
        assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_loop_is_left_as_it_was_found(runtime: Runtime) -> None:
    loop, before = asyncio.get_running_loop(), dict(vars(asyncio.get_running_loop()))
    async with runtime(scripted("Hello.")) as outlast:
        assert (await (await outlast.sessions.create()).ask("Hi")).text == "Hello."
    assert {name for name in vars(loop) if name.startswith(("call_", "_add_"))} == {
        name for name in before if name.startswith(("call_", "_add_"))
    }


class Unspeakable(Exception):
    """Ends the process when somebody asks what it says."""

    def __str__(self) -> str:
        sys.exit(9)

    __repr__ = __str__


class UnspeakableAssertion(Unspeakable, AssertionError):
    """As a model raises it that cannot stream."""


class UnspeakableRefusal(Unspeakable, UserError):
    """As pydantic-ai raises it for an agent that was built wrongly."""


@pytest.mark.parametrize("raised", [Unspeakable, UnspeakableAssertion, UnspeakableRefusal])
async def test_an_error_that_exits_when_it_is_told_harms_nobody(
    runtime: Runtime, raised: Callable[[], BaseException]
) -> None:
    """D9: of a model, of what stands around it and of a tool: logs and rows say that it cannot be shown."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise raised()

    makers = [from_deps, from_history, from_output, from_instructions, from_toolset]
    agents: list[dict[str, Any]] = [{"agent": Agent(FunctionModel(answer))}, *(make(raised) for make in makers)]
    for each in agents:
        async with runtime(**each) as outlast:
            outcome = await (await outlast.sessions.create()).ask("Hi")
            assert (outcome.state, outcome.error is None) == ("failed", False), each
    tools = [tool_of("now", in_coroutine(raised)), tool_of("thread", in_thread(raised))]
    async with runtime(scripted([call("now"), call("thread")], "Both failed."), tools=tools) as outlast:
        assert (await (await outlast.sessions.create()).ask("Try.")).text == "Both failed."


async def test_deps_whose_closing_exits_when_it_is_told_harm_nobody(runtime: Runtime) -> None:
    """D9."""

    @asynccontextmanager
    async def deps(_: TurnContext) -> AsyncGenerator[None]:
        yield
        raise Unspeakable

    async with runtime(scripted("Hello."), deps=deps) as outlast:
        assert (await (await outlast.sessions.create()).ask("Hi")).text == "Hello."


def test_no_object_ends_whoever_writes_it_into_a_log() -> None:
    error = Unspeakable()
    assert last_line(error).endswith("<exception str() failed>")
    assert "<exception str() failed>" in error_chain(error)
    assert redact(error) == "[a Unspeakable that cannot be shown: SystemExit]"


def test_no_note_of_an_error_ends_whoever_writes_it_into_a_log() -> None:
    class Noted(Exception):
        def __getattribute__(self, name: str) -> Any:
            if name == "__notes__":
                sys.exit(9)
            return super().__getattribute__(name)

    assert "Noted that cannot be shown: SystemExit" in error_chain(Noted())
    assert "Noted that cannot be shown: SystemExit" in last_line(Noted())


async def test_other_turns_go_on_while_a_tool_exits(runtime: Runtime) -> None:
    """P8: the turn of another session that runs at the same time ends as if nothing were."""
    here = Checkpoint()

    async def slow() -> str:
        await here()
        return "slow"

    model = ScriptedModel([call("slow"), call("leave"), "It failed.", "Done."])
    async with runtime(model, tools=[slow, leave]) as outlast:
        one, other = await outlast.sessions.create(), await outlast.sessions.create()
        waiting = await one.send("Be slow.")
        await here.reached()
        assert (await other.ask("Leave.")).text == "It failed."
        here.open()
        assert (await waiting.outcome()).text == "Done."
