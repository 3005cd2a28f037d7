"""The agent that every process of the cluster has, and the runtime around it."""

import json
import os
import time
from pathlib import Path

from pydantic_ai import Agent, RunContext

from chaos.effects import Effects
from chaos.ledger import Ledger
from chaos.plan import Moment
from chaos.script import make_agent
from chaos.worker import Caps, settings
from outlast import Outlast, Settings, ids
from outlast.calls.call import RunningCall
from outlast.ids import WorkerId

STALL_SECONDS = 3.0
_TALK = "The river rose."
"""Short: what is measured is how much goes wrong, not how much is said."""


def make_runtime(folder: Path, url: str, number: int) -> Outlast[object, str]:
    return Outlast(_agent(folder, number), database=url, settings=_settings(folder))


def note_names(folder: Path, number: int) -> None:
    """Write down every name under which this process works: a second one means that others took it for dead."""
    plain = ids.worker_id
    file = os.open(folder / "names.jsonl", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def named() -> WorkerId:
        name = plain()
        line = {"worker_id": name, "process": number, "at_us": time.time_ns() // 1_000}
        os.write(file, json.dumps(line).encode() + b"\n")
        return name

    ids.worker_id = named


def _settings(folder: Path) -> Settings:
    """Room for all the traffic: what happens at the limits is shown elsewhere."""
    changes = {"files": str(folder / "files"), "max_requests_per_minute": 1_000_000, "log_level": "warning"}
    return settings(Caps(per_owner=500, per_worker=200)).model_copy(update=changes)


def _agent(folder: Path, number: int) -> Agent[object, str]:
    ledger = Ledger(folder / "ledger.jsonl", number, _note_questions())
    agent = make_agent(ledger, _nowhere, talk=_TALK)
    effects = Effects(ledger, _nowhere)

    @agent.tool
    async def stall(context: RunContext[object], name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Blocks the event loop of its worker, as a careless tool does."""
        effects.begin(context)
        time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - that is the fault
        return effects.finish(context)

    return agent


def _note_questions() -> dict[str, int]:
    """By call, when it was last asked whether it is still this worker's, and the answer was yes."""
    ask, asked_us = RunningCall.ask, dict[str, int]()

    async def noted(self: RunningCall) -> None:
        await ask(self)
        asked_us[self.call_id] = time.time_ns() // 1_000

    RunningCall.ask = noted
    return asked_us


def _nowhere(place: str, moment: Moment) -> None:
    """No place is special here: faults come from outside."""
