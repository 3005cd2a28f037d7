"""M2: a durable turn against the same agent without Outlast, one at a time and many at once."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic_ai import Agent

from bench.measure import Report, Sample, Target, at_once, milliseconds
from bench.turn_work import bare_turn, durable_turn, lifted, new_sessions, scripted_agent
from outlast import Outlast
from outlast.testing import ScriptedModel

ID = "M2"
_DURABILITIES = ("full", "normal")
_SINGLE = 200
_MANY = 128
_ROUNDS = 7
_WARM_UP = 20


def run() -> Report:
    return asyncio.run(_measure())


async def _measure() -> Report:
    report = Report(
        ID,
        "turns: 2 model requests, 1 tool, 10 text deltas; durable through the public API / bare agent.iter()",
        "SQLite file, WAL; `full` is the default durability",
        columns=("work", "p50", "p99", "turns/s", "CPU a turn", "of bare"),
    )
    agent, model = scripted_agent()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        runtimes = {
            durability: await stack.enter_async_context(
                Outlast(agent, database=Path(folder) / f"{durability}.db", settings=lifted(durability, _MANY))
            )
            for durability in _DURABILITIES
        }
        _add(report, "single", await _single(agent, model, runtimes, _SINGLE), turns=1)
        _add(report, f"at_once_{_MANY}", await _at_once(agent, model, runtimes), turns=_MANY)
    report.targets = [
        Target("single, durability full, turns of bare", report.numbers["single_full_of_bare"], 0.6),
        Target(
            f"{_MANY} at once, durability full, turns of bare", report.numbers[f"at_once_{_MANY}_full_of_bare"], 0.7
        ),
    ]
    return report


async def _single(
    agent: Agent[None, str], model: ScriptedModel, runtimes: dict[str, Outlast[None, str]], count: int
) -> dict[str, Sample]:
    """One turn of each kind after the other, so that all meet the same machine."""
    samples = {name: Sample() for name in ("bare", *runtimes)}
    for index in range(count + _WARM_UP):
        if index == _WARM_UP:
            samples = {name: Sample() for name in samples}
        await samples["bare"].take(lambda: bare_turn(agent))
        for name, outlast in runtimes.items():
            (session,) = await new_sessions(outlast, 1)
            await samples[name].take(lambda session=session: durable_turn(session))
        model.requests.clear()
    return samples


async def _at_once(
    agent: Agent[None, str], model: ScriptedModel, runtimes: dict[str, Outlast[None, str]]
) -> dict[str, Sample]:
    samples = {name: Sample() for name in ("bare", *runtimes)}
    for index in range(_ROUNDS + 1):
        if index == 1:
            samples = {name: Sample() for name in samples}
        await samples["bare"].take(lambda: at_once(_MANY, lambda _: bare_turn(agent)))
        for name, outlast in runtimes.items():
            sessions = await new_sessions(outlast, _MANY)
            await samples[name].take(
                lambda sessions=sessions: at_once(_MANY, lambda place: durable_turn(sessions[place]))
            )
        model.requests.clear()
    return samples


def _add(report: Report, label: str, samples: dict[str, Sample], *, turns: int) -> None:
    bare = samples["bare"]
    for name, sample in samples.items():
        of_bare = bare.p50 / sample.p50
        numbers = {
            "p50_s": sample.p50,
            "p99_s": sample.p99,
            "turns_per_s": turns / sample.p50,
            "cpu_per_turn_s": sample.cpu_p50 / turns,
        }
        report.numbers |= {f"{label}_{name}_{key}": value for key, value in numbers.items()}
        if name != "bare":
            report.numbers[f"{label}_{name}_of_bare"] = of_bare
        report.rows.append(_row(f"{label} {name}", sample, turns, of_bare))


def _row(label: str, sample: Sample, turns: int, of_bare: float) -> Sequence[str]:
    return (
        label,
        milliseconds(sample.p50),
        milliseconds(sample.p99),
        f"{turns / sample.p50:.0f}",
        milliseconds(sample.cpu_p50 / turns),
        f"{of_bare:.2f}",
    )
