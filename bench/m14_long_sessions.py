"""M14: one more turn in a session that has had 10, 100, 1,000 or 5,000 of them, and how long others wait meanwhile.

The turn is that of M2, with a tool's result in each. The sessions take turns within one run, so that all meet the same
machine; processor time is that of all threads. `OUTLAST_BENCH_TURNS` names other lengths, for a short run: `10,100`.
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.measure import Report, Sample, Target, loop_lag, milliseconds, quantile
from bench.turn_work import durable_turn, scripted_agent
from outlast import Outlast, Settings
from outlast.handles.session import Session
from outlast.testing import ScriptedModel

ID = "M14"
_LENGTHS = (10, 100, 1_000, 5_000)
_FLAT_FROM = 100
_ROUNDS = 40
_WARM_UP = 3


def run() -> Report:
    return asyncio.run(_measure(_lengths()))


def _lengths() -> tuple[int, ...]:
    given = os.environ.get("OUTLAST_BENCH_TURNS")
    return tuple(int(each) for each in given.split(",")) if given else _LENGTHS


async def _measure(lengths: tuple[int, ...]) -> Report:
    agent, model = scripted_agent()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with Outlast(agent, database=path, settings=Settings(durability="normal")) as outlast:
            made = {length: await _with_turns(outlast, model, length) for length in lengths}
        async with Outlast(agent, database=path) as outlast:
            sessions = {length: await outlast.sessions.get(id) for length, id in made.items()}
            samples, lags = await _turns(sessions, model)
    return _report(samples, lags)


async def _with_turns(outlast: Outlast[None, str], model: ScriptedModel, count: int) -> str:
    """Real turns: their messages, events and rows are what such a session has."""
    session = await outlast.sessions.create()
    for _ in range(count):
        await durable_turn(session)
        model.requests.clear()
    return session.id


async def _turns(
    sessions: Mapping[int, Session], model: ScriptedModel
) -> tuple[dict[int, Sample], dict[int, list[float]]]:
    samples = {length: Sample() for length in sessions}
    lags = {length: list[float]() for length in sessions}
    for number in range(_ROUNDS + _WARM_UP):
        for length, session in sessions.items():
            async with loop_lag() as lag:
                await (samples[length] if number >= _WARM_UP else Sample()).take(
                    lambda session=session: durable_turn(session)
                )
            lags[length] += lag if number >= _WARM_UP else []
            model.requests.clear()
    return samples, lags


def _report(samples: Mapping[int, Sample], lags: Mapping[int, list[float]]) -> Report:
    report = Report(
        ID,
        "one more turn in a session of so many turns",
        "SQLite file, WAL, full",
        columns=("turns before it", "p50", "p99", "CPU a turn", "of CPU at 100", "loop lag p99", "max"),
    )
    base = samples.get(_FLAT_FROM, next(iter(samples.values()))).cpu_p50
    for length, sample in samples.items():
        lag = sorted(lags[length])
        report.numbers |= {
            f"p50_{length}_s": sample.p50,
            f"p99_{length}_s": sample.p99,
            f"cpu_{length}_s": sample.cpu_p50,
            f"cpu_{length}_of_{_FLAT_FROM}": sample.cpu_p50 / base,
            f"loop_lag_p99_{length}_s": quantile(lag, 0.99),
            f"loop_lag_max_{length}_s": lag[-1],
        }
        report.rows.append(
            (
                f"{length:,}",
                milliseconds(sample.p50),
                milliseconds(sample.p99),
                milliseconds(sample.cpu_p50),
                f"{sample.cpu_p50 / base:.2f}",
                milliseconds(quantile(lag, 0.99)),
                milliseconds(lag[-1]),
            )
        )
    longer = [length for length in samples if length >= _FLAT_FROM]
    if longer:
        growth = max(samples[length].cpu_p50 for length in longer) / base
        report.targets.append(Target(f"processor time, of {_FLAT_FROM} turns", growth, 1.3, is_most=True))
    worst = max(lag for each in lags.values() for lag in each)
    report.targets.append(Target("loop lag, longest, ms", worst * 1e3, 50, is_most=True))
    return report
