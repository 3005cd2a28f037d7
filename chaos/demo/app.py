"""The agent of the demo, as every server and worker of its cluster loads it.

What it says follows from the history alone, so any worker goes on where another was. It pauses in the middle of a
sentence until the play has broken something: so nobody has to be quick to see it.
"""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, Step, call, gate, last_user_text, text

DATABASE, FOLDER, PACE = "DEMO_DATABASE", "DEMO_FOLDER", "DEMO_PACE"
"""Environment variables: the database's URL, what all processes share, and seconds between two pieces of a text."""

STATIONS = ("the mill", "the ferry", "the bridge")
STORY = (
    "I begin at the mill. The water is brown after the rain of last night, and the wheel has been standing still since "
    "six. The miller says that it was higher in the year of the great flood.",
    "Then down to the ferry, which does not run today: its rope is under water. On the other side a man with a horse "
    "has been waiting since the morning, and waves at everybody who comes by.",
    "And so to the bridge, where the carts stand in a row. Nobody is let across before the water has fallen by a hand, "
    "and those who know the river say that this will not be before dark.",
)
FAREWELL = "That was the river today. I have written down three levels, one for each station."
PROMISE = "That takes a while. I will tell you when I know."
CAME_TO = "The survey is back: about two million cubic metres a day pass under the bridge."
PAUSE_AT = 70
SURVEY = "survey"
_BUDGET = timedelta(milliseconds=300)


def gate_of(folder: Path, name: str) -> Path:
    """The file for which something waits. Who makes it lets it go on."""
    return folder / f"go-on-{name}"


def _shared() -> Path:
    return Path(os.environ.get(FOLDER, "."))


async def _opened(name: str) -> None:
    path = gate_of(_shared(), name)
    while not path.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)


async def write_level(station: str) -> str:
    """Write a level into the book. It must not be done twice."""
    with (_shared() / "book.txt").open("a") as book:
        book.write(f"level at {station}\n")
    return f"level at {station} is written down"


async def survey() -> str:
    """Only looks, for a long time: it may be run again."""
    with (_shared() / "surveys.txt").open("a") as surveys:
        surveys.write(f"{os.getpid()}\n")
    await _opened(SURVEY)
    return "2,000,000 cubic metres"


def reply(messages: list[ModelMessage]) -> Step:
    pause = float(os.environ.get(PACE, "0.03"))
    asked = last_user_text(messages)
    if asked.startswith("Walk"):
        at = _calls(messages)
        if at == len(STORY):
            return [text(FAREWELL, chunk=4, pause=pause)]
        words = STORY[at]
        return [
            text(words[:PAUSE_AT], chunk=4, pause=pause),
            gate(lambda: _opened(str(at))),
            text(words[PAUSE_AT:], chunk=4, pause=pause),
            call("write_level", station=STATIONS[at]),
        ]
    if asked.startswith("How much"):
        if _calls(messages) == len(STORY):
            return [call(SURVEY)]
        return [text(PROMISE, chunk=4, pause=pause)]
    if asked.startswith("<background_result"):
        return [text(CAME_TO, chunk=4, pause=pause)]
    return [text("I am only here to walk along the river.", chunk=4, pause=pause)]


def _calls(messages: list[ModelMessage]) -> int:
    responses = [each for each in messages if isinstance(each, ModelResponse)]
    return sum(isinstance(part, ToolCallPart) for each in responses for part in each.parts)


app = Outlast(
    Agent(
        ScriptedModel(reply),
        tools=[write_level, Tool(survey, metadata=hints(read_only=True, budget=_BUDGET))],
        name="river",
    ),
    database=os.environ.get(DATABASE, "postgresql:///outlast"),
    settings=Settings(files=str(_shared() / "files"), drain=timedelta(seconds=1), wake_company=timedelta(0)),
)
