"""The app that is deployed, in its old and its new version, and with each of its agents: the environment says which."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage

from chaos.deploy.names import AGENT, DATABASE, FOLDER, GATE, KEPT, RENAMED, VERSION
from chaos.effects import Effects
from chaos.ledger import Ledger
from chaos.plan import Moment
from chaos.script import Script, make_agent
from chaos.worker import Caps, settings
from outlast import Outlast, hints
from outlast.testing import ScriptedModel, Step
from outlast.testing.step import Call

_DRAIN = timedelta(seconds=2)


class NewScript:
    """The model of the new version asks for tools by their new names."""

    def __init__(self) -> None:
        self._script = Script()

    def __call__(self, messages: list[ModelMessage]) -> Step:
        step = self._script(messages)
        if not isinstance(step, Sequence) or isinstance(step, str):
            return step
        return [
            replace(each, tool=RENAMED.get(each.tool, each.tool)) if isinstance(each, Call) else each for each in step
        ]


def _nowhere(place: str, moment: Moment) -> None:
    """Nothing is killed at places here."""


def agent_of(folder: Path) -> Agent[object, str]:
    """The tools of chaos, and two that last until the deploy is over: one in its turn, one in the background."""
    ledger = Ledger(folder / "ledger.jsonl", os.getpid())
    agent, effects = make_agent(ledger, _nowhere), Effects(ledger, _nowhere)

    async def watch(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        while not (folder / GATE).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        return effects.finish(context)

    agent.tool(name="guard", metadata=hints(read_only=True, budget=None))(watch)
    agent.tool(name="patrol", metadata=hints(idempotent=True, budget=0.05))(watch)
    return agent


def renamed(agent: Agent[object, str]) -> Agent[object, str]:
    toolsets = [each.renamed({new: old for old, new in RENAMED.items()}) for each in agent.toolsets]
    return Agent(ScriptedModel(NewScript()), toolsets=toolsets, name=agent.name)


def make(folder: Path, database: str, *, version: str, agent: str) -> Outlast[object, str]:
    found = agent_of(folder)
    changes = {"files": str(folder / "files"), "drain": _DRAIN, "max_requests_per_minute": 1_000_000}
    return Outlast(
        renamed(found) if version == "new" else found,
        database=database,
        name=agent,
        settings=settings(Caps()).model_copy(update=changes),
    )


app = make(
    Path(os.environ.get(FOLDER, ".")),
    os.environ.get(DATABASE, "postgresql:///outlast"),
    version=os.environ.get(VERSION, "old"),
    agent=os.environ.get(AGENT, KEPT),
)
