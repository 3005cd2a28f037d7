"""An app that several processes run on one PostgreSQL. What it does follows from its history, so any of them goes on.

Its tools leave a line in a file each time they really begin, end or are cancelled, and wait for a file to appear.
"""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext, Tool, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from outlast import Outlast, Settings, hints
from outlast.calls import hook
from outlast.calls.call import CallThreads, RunningCall
from outlast.engines import presence, sweep
from outlast.testing import ScriptedModel, call, text
from outlast.testing.step import Step

STEPS = 10
CAPABILITIES: list[AbstractCapability[Any]] = []
FOLDER = Path(os.environ.get("OUTLAST_TEST_FOLDER", "."))


def effect(what: str) -> None:
    with (FOLDER / "effects").open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


async def _until(gate: str) -> None:
    while not (FOLDER / gate).exists():  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(0.02)


async def _guarded(name: str) -> str:
    effect(f"{name}.began")
    try:
        await _until("open")
    except asyncio.CancelledError:
        effect(f"{name}.cancelled")
        raise
    effect(f"{name}.ended")
    return f"{name} done"


async def survey() -> str:
    """Changes the world: nobody may run it twice."""
    return await _guarded("survey")


def dig() -> str:
    """Changes the world too, in a thread."""
    effect("dig.began")
    return "dug"


async def probe() -> str:
    """Only looks: it may be run again."""
    return await _guarded("probe")


async def block(seconds: float) -> str:
    """What no tool should do: it stops the whole event loop."""
    effect("block.began")
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "blocked"


async def stamp(name: str) -> str:
    """Leaves its name, and takes a moment."""
    effect(name)
    await asyncio.sleep(0.1)
    return name


async def glance(at: int) -> str:
    return f"{at} metres"


def _asked(messages: list[ModelMessage]) -> tuple[int, str]:
    """Where the last request of a person or a wake stands, and what it says."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    return at, str(part.content)
    return 0, ""


def words(step: int) -> str:
    return f"Step {step}: " + "the river goes on and on. " * 6


def _seize() -> None:
    """As a pattern does that foreign text keeps busy: no other thread runs any more, and no signal is heard."""
    re.match(r"(a+)+$", "a" * 200 + "!")


_ENDS_THE_PROCESS: dict[str, Callable[[], None]] = {
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "seize": _seize,
}


def reply(messages: list[ModelMessage]) -> Step:
    at, asked = _asked(messages)
    if asked in _ENDS_THE_PROCESS:
        effect(asked)
        _ENDS_THE_PROCESS[asked]()
    answered = sum(isinstance(each, ModelResponse) for each in messages[at:])
    if asked.startswith("talk"):
        said = text(words(answered), chunk=3, pause=0.004)
        return [said] if answered >= STEPS else [said, call("glance", at=answered)]
    if asked.startswith(("survey", "probe", "block", "dig")):
        tool, _, seconds = asked.partition(" ")
        given: dict[str, Any] = {"seconds": float(seconds)} if seconds else {}
        return [call(tool, **given)] if answered == 0 else ["It goes on."]
    return ["Heard."]


def make(database: str, **settings: Any) -> Outlast[Any, Any]:
    tools = [
        Tool(survey, metadata=hints(budget=0.1)),
        Tool(probe, metadata=hints(budget=0.1, read_only=True)),
        Tool(block, metadata=hints(budget=None)),
        Tool(dig),
        Tool(stamp),
        Tool(glance, metadata=hints(read_only=True)),
    ]
    chosen: dict[str, Any] = {
        "coalesce": timedelta(milliseconds=5),
        "wake_company": timedelta(0),
        "drain": timedelta(seconds=1),
        "files": str(FOLDER / "files"),
        **settings,
    }
    return Outlast(
        Agent(ScriptedModel(reply), tools=tools, name="shared", capabilities=CAPABILITIES),
        database=database,
        settings=Settings(**chosen),
    )


def freeze_once(place: str) -> None:
    """The first time that it comes to this place, the whole process stops until somebody sends SIGCONT.

    Then its presence is the last to notice: a turn that goes on without asking has all the time it needs.
    """
    begin_anew = presence.Presence._begin_anew  # pyright: ignore[reportPrivateUsage]

    async def late(self: presence.Presence, connection: Any) -> bool:
        await asyncio.sleep(1)
        return await begin_anew(self, connection)

    presence.Presence._begin_anew = late  # pyright: ignore[reportPrivateUsage]
    {"start": _freeze_before_start, "hook": _freeze_in_hook, "thread": _freeze_before_thread}[place]()


def _freeze(place: str) -> None:
    effect(f"{place}.froze")
    os.kill(os.getpid(), signal.SIGSTOP)


def _freeze_before_start() -> None:
    start = hook.start

    def late(running: RunningCall, handler: Callable[[Any], Any], args: Any) -> asyncio.Task[Any]:
        hook.start = start
        _freeze("start")
        return start(running, handler, args)

    hook.start = late


class _FreezesInHook(AbstractCapability[Any]):
    """A capability of the agent that does something of its own before a tool runs."""

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        if self in CAPABILITIES:
            CAPABILITIES.remove(self)
            _freeze("hook")
        return args


def _freeze_in_hook() -> None:
    CAPABILITIES.append(_FreezesInHook())


def _freeze_before_thread() -> None:
    submit = ThreadPoolExecutor.submit

    def late(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, CallThreads):
            ThreadPoolExecutor.submit = submit
            _freeze("thread")
        return submit(self, fn, *args, **kwargs)

    ThreadPoolExecutor.submit = late


if "OUTLAST_TEST_FROZEN_SECONDS" in os.environ:  # else a test of a freeze waits longer than all the others together
    sweep.FROZEN_SECONDS = float(os.environ["OUTLAST_TEST_FROZEN_SECONDS"])
    presence.SURE_SECONDS = sweep.FROZEN_SECONDS / 2
if "OUTLAST_TEST_GRACE" in os.environ:
    sweep.GRACE_SECONDS = float(os.environ["OUTLAST_TEST_GRACE"])
if "OUTLAST_TEST_PLACE" in os.environ:
    presence.place = lambda: os.environ["OUTLAST_TEST_PLACE"]
if "OUTLAST_TEST_FREEZE" in os.environ:
    freeze_once(os.environ["OUTLAST_TEST_FREEZE"])
app = make(os.environ.get("OUTLAST_TEST_DATABASE", "postgresql:///outlast"))
