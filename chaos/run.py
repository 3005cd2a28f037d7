"""A run: rounds until enough workers have died, and the report about them."""

import asyncio
import json
import platform
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaos.judge import KINDS
from chaos.link import prepare
from chaos.plan import FIRST, KILLS_PER_ROUND, Kill, round_kills
from chaos.round import Round
from chaos.worker import Caps

RESULTS = Path(__file__).parent / "results"
_CAPS = (Caps(), Caps(), Caps(per_worker=2), Caps(per_owner=2), Caps(claims=3))
"""Most rounds have room for everything; in the others work must wait, or crashing again and again ends a turn."""

_PACKAGES = ("outlast", "pydantic-ai-slim", "sqlalchemy")


@dataclass(slots=True)
class Run:
    """With `only`, just the one round that is to be played again; with `place`, all kills are there."""

    kills: int
    seed: int
    name: str
    results: Path = RESULTS
    only: int | None = None
    place: str | None = None
    done: Counter[str] = field(default_factory=Counter[str])
    seen: Counter[str] = field(default_factory=Counter[str])
    missed: list[Kill] = field(default_factory=list[Kill])
    faults: Counter[str] = field(default_factory=Counter[str])
    failing: list[int] = field(default_factory=list[int])
    examples: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def play(self, *, limit: float) -> int:
        """Play all rounds; gives the exit code."""
        prepare()
        print(f"chaos: {self.kills} kills, seed {self.seed}", flush=True)
        began = time.monotonic()
        async with asyncio.timeout(limit):
            planned, number = 0, self.only or 0
            while self.done.total() < self.kills or planned < self.kills:
                kills = min(KILLS_PER_ROUND, max(self.kills - planned, 1))
                await self._round(number, round_kills(self.seed, number, kills, place=self.place))
                planned, number = planned + kills, number + 1
                if self.only is not None:
                    break
            if self.missed:
                # On a slow machine traffic may not lead everywhere in time: these get another chance.
                again, self.missed = self.missed, []
                await self._round(number, again)
        self._report(time.monotonic() - began)
        return 1 if self.faults else 0

    async def _round(self, number: int, plan: list[Kill]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="outlast-chaos-"))
        began = time.monotonic()
        round_ = Round(folder, f"{self.seed}.{number}", plan, _CAPS[number % len(_CAPS)])
        found = await round_.run()
        self.done += round_.done
        self.seen += round_.seen
        self.missed += round_.missed
        seconds = time.monotonic() - began
        print(f"round {number}: {round_.done.total()} kills, {len(found)} faults, {seconds:.1f} s", flush=True)
        if not found:
            shutil.rmtree(folder)
            return
        self.failing.append(number)
        self.faults.update(fault["kind"] for fault in found)
        self.examples += found[:5]
        for fault in found[:10]:
            print(f"  {fault['kind']}: {fault['session_id']} {fault['what'][:300]}")
        print(f"  everything is in {folder}", flush=True)
        if plan == round_kills(self.seed, number, len(plan), place=self.place):
            print(f"  play it again with --seed {self.seed} --round {number}", flush=True)

    def _report(self, seconds: float) -> None:
        totals: Mapping[str, int] = {kind: self.faults[kind] for kind in KINDS}
        report = {
            "kills": self.done.total(),
            **totals,
            "missed": sorted(kill.name for kill in self.missed),
            "never_hit": self._never_hit(),
            "places": dict(sorted(self.done.items())),
            "seen": dict(sorted(self.seen.items())),
            "seed": self.seed,
            "failing_rounds": self.failing,
            "examples": self.examples,
            "seconds": round(seconds, 1),
            "versions": {
                "python": platform.python_version(),
                "sqlite": sqlite3.sqlite_version,
                **{name: version(name) for name in _PACKAGES},
            },
        }
        self.results.mkdir(exist_ok=True)
        path = self.results / f"{self.name}.json"
        path.write_text(json.dumps(report, indent=2) + "\n")
        shown = ", ".join(f"{kind} {count}" for kind, count in totals.items())
        if report["never_hit"]:
            print(f"nobody was killed at {', '.join(self._never_hit())}", flush=True)
        print(f"{self.done.total()} kills: {shown}\nreport: {path.name}", flush=True)

    def _never_hit(self) -> list[str]:
        """The places that every run of this length should have been at, and was not: it says nothing about them."""
        if self.place is not None or self.only is not None or self.kills < len(FIRST):
            return []
        return sorted(set(FIRST) - {name.partition("/")[0] for name in self.done})
