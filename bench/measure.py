"""Measuring: samples, the machine they were taken on, and a report that compares within one run."""

import asyncio
import math
import os
import platform
import sqlite3
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_core import to_json

RESULTS = Path(__file__).parent / "results"


@dataclass(slots=True)
class Sample:
    """Durations of one kind of work, with the processor time each took over all threads of this process."""

    seconds: list[float] = field(default_factory=list[float])
    cpu_seconds: list[float] = field(default_factory=list[float])

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        return quantile(self.seconds, 0.99)

    @property
    def cpu_p50(self) -> float:
        return statistics.median(self.cpu_seconds)

    async def take(self, work: Callable[[], Awaitable[object]]) -> None:
        began, began_cpu = time.perf_counter(), time.process_time()
        await work()
        self.seconds.append(time.perf_counter() - began)
        self.cpu_seconds.append(time.process_time() - began_cpu)


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach. `value` may be at most or at least `bound`."""

    name: str
    value: float
    bound: float
    is_most: bool = False

    @property
    def is_met(self) -> bool:
        return self.value <= self.bound if self.is_most else self.value >= self.bound


@dataclass(slots=True)
class Report:
    """What a benchmark found: flat numbers for machines, rows for people, targets for both."""

    id: str
    title: str
    store: str
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    columns: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    targets: list[Target] = field(default_factory=list[Target])
    notes: list[str] = field(default_factory=list[str])
    """What was left out, and why."""

    def write(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.id}.json"
        content: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "store": self.store,
            **({"notes": self.notes} if self.notes else {}),
            **{name: _rounded(value) for name, value in self.numbers.items()},
            "targets": [
                {**asdict(each), "value": _rounded(each.value), "is_met": each.is_met} for each in self.targets
            ],
        }
        path.write_bytes(to_json(content, indent=2) + b"\n")
        return path


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "pydantic_ai": version("pydantic-ai-slim"),
        "sqlalchemy": version("sqlalchemy"),
        "load": round(os.getloadavg()[0], 1),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * share) - 1]


@asynccontextmanager
async def loop_lag() -> AsyncGenerator[list[float]]:
    """How late a coroutine that wants to run every 5 ms really runs."""
    lags: list[float] = []
    loop = asyncio.get_running_loop()

    async def tick() -> None:
        while True:
            due = loop.time() + 0.005
            await asyncio.sleep(0.005)
            lags.append(loop.time() - due)

    ticking = asyncio.create_task(tick())
    try:
        yield lags
    finally:
        ticking.cancel()
        await asyncio.wait({ticking})


async def at_once(count: int, work: Callable[[int], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for index in range(count):
            group.create_task(_of(work, index))


async def _of(work: Callable[[int], Awaitable[object]], index: int) -> None:
    await work(index)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:.2f} ms"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
