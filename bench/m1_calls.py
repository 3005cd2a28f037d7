"""M1: a fast tool through the budget hook against the bare agent: what the hook adds to a call and to a turn."""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from bench.measure import Report, Sample, Target, milliseconds
from outlast import ids
from outlast.agents.lease import DepsLease
from outlast.calls.control.toolset import ControlToolset
from outlast.calls.gates.standing import gates_for
from outlast.calls.hook import CallHook, CallPolicy
from outlast.calls.view import Viewer
from outlast.calls.within.channel import ChannelHome
from outlast.clock import SystemClock
from outlast.events.signals import LocalSignals
from outlast.runs.call_parts import CallParts
from outlast.runs.parked import ParkedCalls
from outlast.runs.turns.resume import OpenCallBook
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.files.file_store import FileStore
from outlast.store.sqlite import opening
from outlast.testing import ScriptedModel, calls, texts_seen, tool_returns
from outlast.transitions.turn import Fence
from outlast.values.secrets import Secrets

ID = "M1"
_ROUNDS = 150
_MANY = 100
_FEW = 3


def agent_of(count: int) -> tuple[Agent[None, str], ScriptedModel]:
    def script(messages: list[Any]) -> Any:
        assert texts_seen(messages)
        return "Done." if tool_returns(messages) else calls("add", *({"a": at, "b": 1} for at in range(count)))

    model = ScriptedModel(script)
    agent = Agent(model)

    @agent.tool_plain
    async def add(a: int, b: int) -> int:  # pyright: ignore[reportUnusedFunction]
        return a + b

    return agent, model


def run() -> Report:
    return asyncio.run(_run())


async def _run() -> Report:
    report = Report(
        ID,
        "a fast async tool through the budget hook / bare",
        "none: only the hook",
        columns=("work", "bare", "hook", "ratio"),
    )
    async with AsyncExitStack() as stack:
        host = await _host(stack)
        for count in (_FEW, _MANY):
            agent, model = agent_of(count)
            bare, hooked = Sample(), Sample()
            for index in range(_ROUNDS):
                if index == 10:
                    bare, hooked = Sample(), Sample()
                await bare.take(lambda agent=agent: _turn(agent, []))
                await hooked.take(lambda agent=agent: _turn(agent, [_hook(host)]))
                model.requests.clear()
            added = (hooked.p50 - bare.p50) / count
            report.numbers |= {
                f"turn_{count}_bare_p50_s": bare.p50,
                f"turn_{count}_hook_p50_s": hooked.p50,
                f"turn_{count}_ratio": hooked.p50 / bare.p50,
                f"turn_{count}_added_per_call_s": added,
            }
            row = (f"a turn with {count} calls", milliseconds(bare.p50), milliseconds(hooked.p50))
            report.rows.append((*row, f"{hooked.p50 / bare.p50:.3f}"))
    added_us = report.numbers[f"turn_{_MANY}_added_per_call_s"] * 1e6
    report.targets = [
        Target("microseconds added to a call", added_us, 55, is_most=True),
        Target(f"turn with {_FEW} calls, times bare", report.numbers[f"turn_{_FEW}_ratio"], 1.1, is_most=True),
    ]
    return report


async def _turn(agent: Agent[None, str], capabilities: list[Any]) -> None:
    async with agent.iter("go", capabilities=capabilities) as running:
        async for node in running:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(running.ctx) as stream:
                    async for _ in stream:
                        continue


def _hook(host: TurnCalls) -> CallHook:
    host.relax()
    context = host.gate_context([], [])
    return CallHook(
        host=host,
        open_calls=OpenCallBook(),
        context=context,
        gates=gates_for(context),
        policy=CallPolicy(timedelta(seconds=60), timedelta(hours=24), timedelta(seconds=1)),
        parking=host,
        control=ControlToolset(),
        instructions=None,
    )


async def _host(stack: AsyncExitStack) -> TurnCalls:
    """The turn's side of the hook as the runtime builds it; nothing is written, because nothing is parked."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    database = await opening.open_sqlite(folder / "m1.db", clock=SystemClock(), durability="full")
    stack.push_async_callback(database.close)
    files, secrets, viewer = FileStore(str(folder / "files")), Secrets(), Viewer(FileStore(str(folder / "files")))
    parked = ParkedCalls(database, LocalSignals(), viewer, SystemClock(), abandon_after=timedelta(seconds=10))
    parts = CallParts(ChannelHome(database, files, secrets), viewer, parked, ids.worker_id(), 32, timedelta(hours=24))
    fence = Fence(ids.session_id(), ids.turn_id(), 1)
    log = TurnLog(database, files, fence, secrets, timedelta(milliseconds=25), when_lost=lambda: None)
    return TurnCalls(parts, log, "agent", "local", DepsLease(None), press_after=timedelta(seconds=5))
