"""The agent under test: what it does follows from the history alone, so it goes on after any crash.

The model does the steps of every plan it has seen, in order, that stand in no response yet, and then says
that it is done. The id of a call is made of token and step: a call that is asked for again has the same id.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

import outlast
from chaos.effects import At, Effects
from chaos.ledger import Ledger
from chaos.words import CHECK, CHILD, CHILDREN, SPAWN, SPAWNED, VIGIL_SECONDS, child_token, plan_of, plans_in
from chaos.work_tools import add_work_tools
from outlast.testing import ScriptedModel, Step, call, error, reasoning, text, texts_seen, tool_returns

_TALK = "The river rose by a hand overnight, and the bridge was closed before noon. " * 3


class Script:
    """The steps of one worker's model. The only thing it remembers is where it already failed once."""

    def __init__(self, talk: str = _TALK) -> None:
        self._talk = talk
        self._failed: set[str] = set()

    def __call__(self, messages: list[ModelMessage]) -> Step:
        asked, token = set(_asked(messages)), ""
        for content in texts_seen(messages):
            for token, steps in plans_in(content):
                for number, step in enumerate(steps):
                    name = f"{token}.{number}"
                    if name not in asked:
                        return self._step(name, step, _handles(messages))
        return text(f"Done with {token}. {self._talk}", chunk=24, pause=0.004)

    def _step(self, name: str, step: str, task_ids: Sequence[str]) -> Step:
        said = _TALK if step == "talk" else self._talk
        words = text(f"Now {name}. {said}", chunk=30, pause=0.004)
        # A response of text alone would end the turn, so each step asks for something.
        looks = call("look", {"name": name}, call_id=f"{name}.0")
        if step == "talk":
            return [reasoning("Let me think about that. ", chunk=5, pause=0.004), words, looks]
        if step == "flaky":
            if name in self._failed:
                return [words, looks]
            self._failed.add(name)
            return [text(f"Now {name}. I was about to", chunk=4, pause=0.008), error(503)]
        wanted = enumerate(step.split("+"))
        asked = [(at, *_tool(tool, name, at, task_ids)) for at, tool in wanted]
        return [words, *(call(tool, args, call_id=f"{name}.{at}", chunk=6) for at, tool, args in asked)]


def _tool(word: str, name: str, at: int, task_ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The tool that a word of a plan stands for, and its arguments; `task_ids` are all that history tells of."""
    if word in SPAWNED:
        return SPAWN, {"tool": SPAWNED[word], "args": {"name": f"{name}.{at}"}}
    if word in CHILDREN:
        prompt = plan_of(child_token(f"{name}.{at}"), [CHILDREN[word]])
        return CHILD, {"prompt": prompt, "wait_seconds": 3 if word == "son" else 0}
    if word not in ("check", "list", "quit"):
        return word, {"name": name}
    if word == "list" or not task_ids:
        return CHECK, {"list": True}
    if word == "quit":
        return CHECK, {"task_id": task_ids[-1], "cancel": True}
    return CHECK, {"task_id": list(task_ids[-2:]), "wait_seconds": 3}


def _handles(messages: Sequence[ModelMessage]) -> list[str]:
    """The tasks that calls were parked as, oldest first."""
    returned = cast(list[dict[str, Any]], [each for each in tool_returns(messages).values() if isinstance(each, dict)])
    return [each["task_id"] for each in returned if each.get("type") == "background"]


def _asked(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """The steps whose calls stand in history."""
    for message in messages:
        if isinstance(message, ModelResponse):
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    yield part.tool_call_id.rpartition(".")[0]


def make_agent(ledger: Ledger, at: At, *, talk: str = _TALK) -> Agent[object, str]:
    """An agent with quick, slow, blocking, failing and repeatable tools, and some that outlast their budget.

    `talk` is what its model says with each step; a step called `talk` is always a long one.
    """
    agent: Agent[object, str] = Agent(ScriptedModel(Script(talk)), name="chaos")
    effects = Effects(ledger, at)

    async def note(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        return effects.finish(context)

    async def slow(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        await asyncio.sleep(0.12)
        return effects.finish(context)

    def thread(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        time.sleep(0.3)
        return effects.finish(context)

    async def survey(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        await asyncio.sleep(0.3)
        return effects.finish(context)

    async def vigil(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        await asyncio.sleep(VIGIL_SECONDS)
        return effects.finish(context)

    async def fail(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        effects.finish(context)
        raise ToolFailed(f"There is no {name}.")

    for tool in (note, slow, fail):
        agent.tool(tool)
    agent.tool(thread)
    agent.tool(name="again", metadata=outlast.hints(idempotent=True))(slow)
    agent.tool(name="look", metadata=outlast.hints(read_only=True))(note)
    agent.tool(metadata=outlast.hints(budget=0.05))(survey)
    agent.tool(metadata=outlast.hints(budget=0.05))(vigil)
    agent.tool(name="scan", metadata=outlast.hints(budget=0.05, idempotent=True))(survey)
    add_work_tools(agent, effects)
    return agent
