"""The hostile agent: what its model says and its tools do follows from the number of the case alone."""

import asyncio
import json
import random
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent, Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart

import outlast
from fuzz import nasty
from outlast.testing import ScriptedModel, Step, call, reasoning, text

_ERRORS: Sequence[type[BaseException]] = (
    *(ValueError, ToolFailed, SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit, MemoryError, ModelRetry),
    *(asyncio.CancelledError, RecursionError, BaseExceptionGroup, TimeoutError, LookupError),
)
_DEADLINES = (None, 5, 1e300, timedelta.max, timedelta(microseconds=1))
_CASE = re.compile(r"case (\d+)\b")
_MOST_CALLS = 4
_LONGEST = 2_000
"""Of what the model says: it may say it character by character."""


class Unspeakable(Exception):
    """Ends the process when somebody asks what it says."""

    def __str__(self) -> str:
        raise SystemExit(9)

    __repr__ = __str__


def agent() -> Agent[None, str]:
    soon = outlast.hints(budget=0.01)
    tools = [Tool(canary), Tool(hand_over), Tool(hand_over_async), Tool(hand_over_later, metadata=soon)]
    return Agent(ScriptedModel(_answer), tools=tools, name="hostile")


def canary(case: int) -> str:
    """A sound call beside the odd ones."""
    return f"sound {case}"


def hand_over(case: int, number: int, extra: Any = None) -> Any:
    """Say odd things, then return something odd or raise it."""
    source = random.Random(f"{case} {number}")
    for _ in range(source.randrange(3)):
        _say(source)
    if not is_returned(case, number):
        raise _error(source)
    given = nasty.value(source)
    if source.random() < 0.2:
        content = source.choice([None, nasty.text(source), [nasty.text(source), given]])
        return ToolReturn(given, content=content, metadata=given)
    return given


async def hand_over_async(case: int, number: int, extra: Any = None) -> Any:
    """The same on the event loop, where a tool can do more."""
    await _use(random.Random(f"use {case} {number}"))
    return hand_over(case, number, extra)


async def hand_over_later(case: int, number: int, extra: Any = None) -> Any:
    """The same in the background."""
    await asyncio.sleep(0.03)
    return await hand_over_async(case, number, extra)


def is_returned(case: int, number: int) -> bool:
    """Whether a call comes to a value."""
    return random.Random(f"end {case} {number}").random() < 0.7


def model_raises(case: int) -> bool:
    """Whether the model fails once the calls are done: its turn does, and nothing else."""
    return random.Random(f"model raises {case}").random() < 0.1


async def _use(source: random.Random) -> None:
    """What it is refused is no failure of the call: it goes on without."""
    try:
        match source.randrange(4):
            case 0:
                await outlast.files.write(nasty.text(source), nasty.text(source), nasty.short(source))
            case 1:
                async with outlast.external(
                    title=nasty.value(source, 1), deadline=source.choice(_DEADLINES)
                ) as operation:
                    await operation.withdraw()
            case 2:
                await outlast.ask(nasty.text(source) if source.random() < 0.7 else nasty.value(source, 1))
            case _:
                await outlast.connection(nasty.value(source, 0))
    except Exception:  # whatever it is: the words of a refusal are told with the next call that fails
        outlast.output("refused\n")


def _say(source: random.Random) -> None:
    match source.randrange(5):
        case 4:
            _spend(nasty.value(source, 0))
        case 0:
            outlast.progress(nasty.value(source, 1), nasty.value(source, 0), label=nasty.value(source, 1))
        case 1:
            outlast.output(nasty.text(source))
        case 2:
            outlast.artifact(nasty.value(source, 0), b"x", nasty.text(source))
        case _:
            outlast.secret(nasty.secret(source))


def _spend(microdollars: Any) -> None:
    try:
        outlast.cost(microdollars)
    except (ArithmeticError, TypeError, ValueError, outlast.OutlastError):  # it cannot be compared, or is less than 0
        outlast.output("no cost\n")


def _error(source: random.Random) -> BaseException:
    """Python itself writes out what an error is given: that must have an end."""
    kind = source.choice(_ERRORS)
    if kind is BaseExceptionGroup:
        return BaseExceptionGroup(nasty.text(source), [ValueError(nasty.oddity(source)), SystemExit(1)])
    if source.random() < 0.1:
        return Unspeakable()
    return kind(nasty.text(source) if source.random() < 0.5 else nasty.oddity(source))


def _answer(messages: list[ModelMessage]) -> Step:
    """First some calls among odd words, then odd words alone."""
    prompts = [
        (at, str(part.content))
        for at, message in enumerate(messages)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    asked = [(at, int(found[1])) for at, prompt in prompts if (found := _CASE.search(prompt))]
    at, number = asked[-1] if asked else (len(messages), 0)
    said = sum(isinstance(message, ModelResponse) for message in messages[at:])
    source = random.Random(f"model {number} {said}")
    if said and model_raises(number):
        raise _error(source)
    if said or not asked:
        words = nasty.text(source)[:_LONGEST]
        return text(f"{words}.", chunk=source.choice([None, 1, 7]) if source.random() < 0.5 else None)
    return [*_words(source), *_calls(source, number)]


def _words(source: random.Random) -> list[Any]:
    made = [nasty.text(source)[:_LONGEST] for _ in range(2)]
    chunk = source.choice([None, 1, 3])
    return [reasoning(f"{made[0]}.", chunk=chunk), text(f"{made[1]}.", chunk=chunk)]


def _calls(source: random.Random, case: int) -> list[Any]:
    odd = [_odd_call(source, case, number) for number in range(source.randrange(_MOST_CALLS))]
    sound = call("canary", call_id=f"{nasty.short(source)} sound", case=case)
    return source.sample([*odd, sound], len(odd) + 1)


def _odd_call(source: random.Random, case: int, number: int) -> Any:
    tool = source.choice(["hand_over", "hand_over_async", "hand_over_later"])
    given = {"case": case, "number": number}
    if source.random() < 0.3:
        given["extra"] = nasty.plain(source, 2, digits=False)
    return call(tool, json.dumps(given), call_id=f"{nasty.short(source)} {number}", chunk=source.choice([None, 5]))
