"""The agent whose sessions `make_database.py` leaves behind: its words and its tools, each of which can be held up."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic_ai import Agent, Tool, ToolReturn
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.usage import RequestUsage

import outlast as public
from outlast import hints
from outlast.testing import (
    ScriptedModel,
    call,
    error,
    gate,
    last_user_text,
    reasoning,
    reply,
    text,
    texts_seen,
    tool_returns,
)
from tests.support.logs.summary import Report
from tests.support.models.prices import PricedModel

PASSWORD = "hunter2-hunter2"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
ODD = 'Grüße, 世界 🌍 – it\'s a "quoted" \\ back\tslash;\n$1 %s :name --'
LARGE = "".join(f"{number % 100:08}" for number in range(15_000))
WAKE = "<background_result"


class Actor:
    """Whoever comes to a place waits there until it is opened; in a process that is to be killed, for ever."""

    def __init__(self) -> None:
        self._opened: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._tries: Counter[str] = Counter()

    async def at(self, place: str) -> None:
        self._reached[place].set()
        await self._opened[place].wait()

    async def reached(self, *places: str) -> None:
        for each in places:
            await self._reached[each].wait()

    def open(self, *places: str) -> None:
        for each in places:
            self._opened[each].set()

    def agent(self) -> Agent[None, Any]:
        tools: list[Any] = [
            Tool(self.survey, metadata=hints(budget=0.02)),
            Tool(self.survey, name="survey_again", metadata=hints(idempotent=True, budget=0.02)),
            Tool(self.survey, name="survey_group", metadata=hints(budget=0.02, group="rivers")),
            Tool(self.survey, name="survey_briefly", metadata=hints(budget=0.02, deadline=0.2)),
            Tool(self.stubborn, metadata=hints(budget=0.02)),
            Tool(self.charge),
            Tool(self.charge, name="upsert", metadata=hints(idempotent=True)),
            picture,
            read,
            large,
            login,
            keep,
            broken,
        ]
        return Agent(ScriptedModel(self.answer), output_type=[str, Report], tools=tools, name="agent")

    def models(self) -> Mapping[str, Any]:
        return {"cheap": PricedModel(self.answer, dollars=0.0025)}

    async def survey(self, river: str) -> str:
        public.output(f"measuring the {river}\n")
        public.progress(1, 3, unit="m", label=river)
        if river == "Neckar":
            await asyncio.sleep(0.1)
            return "it rises"
        await self.at(river)
        if river == "Oder":
            raise ValueError("the Oder has no gauge")
        public.output(f"{ODD}\n")
        public.artifact(f"{river}.txt", f"{river}: 3 m".encode(), "text/plain")
        return f"the {river} is 3 m deep"

    async def stubborn(self, name: str) -> str:
        """Ignores its cancel: nobody knows what becomes of it."""
        while not self._opened[name].is_set():
            try:
                await self.at(name)
            except asyncio.CancelledError:
                continue
        return "a hole"

    async def charge(self, amount: int) -> str:
        public.progress(amount, label="charging")
        await self.at(f"charge {amount}")
        return f"charged {amount}"

    def answer(self, messages: list[ModelMessage]) -> Any:
        """By what was said last, and by how much was answered to it."""
        said = last_user_text(messages)
        done = _answers_since(messages)
        if said.startswith(WAKE):
            is_restless = any("Again and again." in each for each in texts_seen(messages))
            return call("survey", river="Neckar") if is_restless and not done else "Noted."
        if said.startswith("Check: "):
            return _check(said.removeprefix("Check: "), messages)
        steps = self._script(said)
        return steps[min(done, len(steps) - 1)]

    def _script(self, said: str) -> list[Any]:
        self._tries[said] += 1
        tries = self._tries[said]
        match said.partition(":")[0]:
            case "Survey":
                tool, *rivers = said.split(": ")[1].split()
                asked = [call(tool, river=each, call_id=f"s-{each}") for each in rivers]
                return [asked, "It goes on."]
            case "Again and again.":
                return [call("survey", river="Neckar"), "It goes on."]
            case "Charge":
                tool, amount = said.split(": ")[1].split()
                return [call(tool, amount=int(amount), call_id=f"c-{amount}"), "Charged, I think."]
            case "Dig":
                return [call("stubborn", name=said, call_id="d1"), "It goes on."]
            case "Speak slowly.":
                return [[text("Half an ans"), gate(lambda: self.at("words")), text("wer.")]]
            case "Speak for ever.":
                return [[text("Half an ans"), gate(lambda: self.at("ever")), text("wer.")]]
            case "Speak until you are stopped.":
                return [[reasoning("Well. "), text("Endless "), gate(lambda: self.at("end")), text("words.")]]
            case "Tell a long story.":
                story = " ".join(f"Chapter {number}: {ODD}" for number in range(20))
                return [[reasoning("A story, then. " * 10, chunk=15, pause=0.004), text(story, chunk=40, pause=0.004)]]
            case "Report.":
                return [call("final_result", city="Oslo", degrees=4, call_id="f1")]
            case "Fail.":
                return [error(400)]
            case "Fail once.":
                return [error(400) if tries == 1 else "Now it works."]
            case "Stumble.":
                return [[text("Half an ans"), error(503)] if tries == 1 else "Whole."]
            case "Show me." | "Log in." | "Keep it." | "Break it.":
                tool = {"Show me.": "picture", "Log in.": "login", "Keep it.": "keep", "Break it.": "broken"}[said]
                return [call(tool, call_id="p1"), f"The password is {PASSWORD}." if tool == "login" else "Here."]
            case "Read badly.":
                return [call("read", '{"page": "first"}', call_id="r0"), call("read", page=1, call_id="r1"), "Read."]
            case "Read all.":
                refused: Any = error(ModelContextWindowExceededError("scripted", "too long"))
                pages = [call("read", page=page, call_id=f"r{page}") for page in range(3)]
                return [*pages, refused if tries == 4 else "Read."]
            case "Read what is large.":
                return [call("large", call_id="l1"), call("read_output", id="l1", offset=8, length=8), "Long."]
            case "Count.":
                used = RequestUsage(input_tokens=1_000, output_tokens=200, cache_read_tokens=400, cache_write_tokens=5)
                return [reply(f"One, two, {tries + 1}.", usage=used)]
            case _:
                return [f"You said: {said[:200]}"]


def _answers_since(messages: list[ModelMessage]) -> int:
    """How often the model has answered since somebody last said something."""
    count = 0
    for message in messages:
        if isinstance(message, ModelResponse):
            count += 1
        elif any(isinstance(part, UserPromptPart) for part in message.parts):
            count = 0
    return count


def _check(river: str, messages: list[ModelMessage]) -> Any:
    """Asks for the result of a task before it is told: then nobody is woken."""
    returns: dict[str, Any] = dict(tool_returns(messages))
    if "k0" not in returns:
        return call("survey", river=river, call_id="k0")
    if "k1" not in returns:
        return call("check_background", task_id=returns["k0"]["task_id"], wait_seconds=60, call_id="k1")
    return "It is known."


def picture() -> ToolReturn[str]:
    return ToolReturn("a picture", content=["Look:", BinaryContent(PICTURE, media_type="image/png")])


def read(page: int) -> str:
    return f"page {page}: " + "word " * 400


def large() -> str:
    return LARGE


def login() -> str:
    return f"logged in with {public.secret(PASSWORD)}"


def keep() -> dict[str, Any]:
    return {"kept": public.artifact("notes.txt", ODD.encode(), "text/plain"), "$file": "not a file", "odd": ODD}


def broken() -> None:
    raise RuntimeError("it broke")
