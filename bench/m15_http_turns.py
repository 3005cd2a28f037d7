"""M15: the turn of M2 over HTTP, Outlast beside other servers, with 1 to 128 clients at once.

All servers are up for the whole run and are asked one after the other, so that all meet the same machine. The clients
are in this process, the same for all. A peer that cannot be installed, does not come up or fails under the load is
left out, and the result says so.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import Report, Target, at_once, milliseconds, quantile
from bench.peers.aegra import aegra
from bench.peers.agno import agno
from bench.peers.contender import Contender
from bench.peers.environment import LeftOut
from bench.peers.langgraph import langgraph
from bench.peers.outlast import POSTGRES, SQLITE, outlast_on_postgres, outlast_on_sqlite

ID = "M15"
_MOST = 128
ROUNDS = {1: 40, 16: 8, 64: 5, _MOST: 5}
"""How often so many turns at once; one round more comes first and does not count."""
_OURS: Sequence[Callable[[Path], AbstractContextManager[Contender]]] = (outlast_on_sqlite, outlast_on_postgres)
_PEERS: Mapping[str, Callable[[Path], AbstractContextManager[Contender]]] = {
    "langgraph": lambda folder: langgraph(folder, _MOST),
    "agno": agno,
    "aegra": aegra,
}


@dataclass(slots=True)
class Load:
    """What one contender did with so many turns at once."""

    turns: list[float] = field(default_factory=list[float])
    """Seconds of each turn."""
    rounds: list[float] = field(default_factory=list[float])
    cpu_seconds: float = 0.0

    async def take(self, contender: Contender, count: int) -> None:
        async with contender.client(count) as client:
            names = [f"{id(self)}-{len(self.rounds)}-{at}" for at in range(count)]
            talks = [await contender.conversation(client, name) for name in names]

            async def turn(at: int) -> None:
                began = time.perf_counter()
                await contender.take_turn(client, talks[at])
                self.turns.append(time.perf_counter() - began)

            began, began_cpu = time.perf_counter(), contender.cpu_seconds()
            await at_once(count, turn)
            self.rounds.append(time.perf_counter() - began)
            self.cpu_seconds += contender.cpu_seconds() - began_cpu

    @property
    def rate(self) -> float:
        return len(self.turns) / len(self.rounds) / quantile(self.rounds, 0.5)

    @property
    def cpu_per_turn(self) -> float:
        return self.cpu_seconds / len(self.turns)


def run() -> Report:
    columns = ("at once", "who", "p50 a turn", "p99 a turn", "turns/s", "CPU a turn")
    report = Report(ID, "the turn of M2 over HTTP, streamed to its end", "", columns=columns)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        contenders = [stack.enter_context(start(_new(folder, start.__name__))) for start in _OURS]
        for name, start in _PEERS.items():
            try:
                contenders.append(stack.enter_context(start(_new(folder, name))))
            except LeftOut as exc:
                report.notes.append(f"left out: {exc}")
        report.store = "; ".join(f"{each.name}: {each.store}" for each in contenders)
        for count, rounds in ROUNDS.items():
            print(f"{count} at once, {rounds} times, {len(contenders)} servers", file=sys.stderr, flush=True)
            _add(report, count, asyncio.run(_measure(report, contenders, count, rounds)))
    report.targets = _targets(report.numbers)
    return report


async def _measure(report: Report, contenders: list[Contender], count: int, rounds: int) -> dict[str, Load]:
    loads = {each.name: Load() for each in contenders}
    for index in range(rounds + 1):
        if index == 1:
            loads = {each.name: Load() for each in contenders}
        for contender in list(contenders):
            try:
                await loads[contender.name].take(contender, count)
            except ExceptionGroup as failed:
                if contender.name in (SQLITE, POSTGRES):
                    raise
                why = str(failed.exceptions[0])[:300] or repr(failed.exceptions[0])
                report.notes.append(f"left out from {count} at once on: {contender.name}: {why}")
                contenders.remove(contender)
                loads.pop(contender.name)
    return loads


def _add(report: Report, count: int, loads: Mapping[str, Load]) -> None:
    for name, load in loads.items():
        p50, p99 = quantile(load.turns, 0.5), quantile(load.turns, 0.99)
        numbers = {"p50_s": p50, "p99_s": p99, "turns_per_s": load.rate, "cpu_per_turn_s": load.cpu_per_turn}
        report.numbers |= {f"at_once_{count}_{name}_{key}": value for key, value in numbers.items()}
        shown = (milliseconds(p50), milliseconds(p99), f"{load.rate:.1f}", milliseconds(load.cpu_per_turn))
        report.rows.append((str(count), name, *shown))
    rates = {name: load.rate for name, load in loads.items() if name not in (SQLITE, POSTGRES)}
    if rates:
        for name in (SQLITE, POSTGRES):
            report.numbers[f"at_once_{count}_{name}_of_best_peer"] = loads[name].rate / max(rates.values())


def _targets(numbers: Mapping[str, float]) -> list[Target]:
    targets = [
        Target(f"{count} at once, {name}, turns/s of the best peer's", numbers[key], 2)
        for count in ROUNDS
        for name in (SQLITE, POSTGRES)
        if count >= 16 and (key := f"at_once_{count}_{name}_of_best_peer") in numbers
    ]
    cpu = {name: numbers[f"at_once_16_{name}_cpu_per_turn_s"] for name in (SQLITE, POSTGRES)}
    targets.append(
        Target("16 at once, PostgreSQL's CPU a turn of SQLite's", cpu[POSTGRES] / cpu[SQLITE], 2, is_most=True)
    )
    for name in (SQLITE, POSTGRES):
        rates = [numbers[f"at_once_{count}_{name}_turns_per_s"] for count in (64, _MOST)]
        # Two runs of the same differ by some percent.
        targets.append(Target(f"{name}, turns/s with {_MOST} at once of those with 64", rates[1] / rates[0], 0.95))
    return targets


def _new(folder: str, name: str) -> Path:
    path = Path(folder) / name
    path.mkdir()
    return path
