"""`python -m fuzz.load [--seconds 60]`: what one owner feels while strangers and another owner do their worst.

One server process on this machine. The owner's requests are measured in one run: alone, `before` and `after`; while the
attack goes against another server process, `beside`; and while it goes against this one, `during`.

All of them share the processors. So the attackers run at the lowest priority: elsewhere they would have a machine of
their own. `times` compares with the owner alone, `times_beside` with the owner on a machine that is just as busy.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.support.processes.serving_process import ServingProcess

ROOT = Path(__file__).parents[1]
_AIM = 5.0
_EVERY_SECONDS = 0.05
_TURN_EVERY = 10
_LOWEST_PRIORITY = 19


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.load", description="Load a server; measure a bystander.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the attack lasts (default: 60)")
    parser.add_argument("--report", type=Path, default=None, help="where to keep the figures, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), given.seconds)
    print(json.dumps(figures, indent=2))
    if given.report is not None:
        given.report.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if not figures["failures"] and figures["times"] <= _AIM else 1


@dataclass
class Bystander:
    """An owner with ordinary requests: what each took, and those that failed."""

    client: httpx2.AsyncClient
    session: str = ""
    requests: list[float] = field(default_factory=list[float])
    turns: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])

    async def begin(self) -> None:
        self.session = (await self.client.post("/v1/sessions", json={})).json()["id"]

    async def go_on(self, until: float) -> None:
        at = 0
        while time.monotonic() < until:
            at += 1
            began = time.monotonic()
            if at % _TURN_EVERY:
                await self._timed(self.requests, ("GET", "/v1/sessions"), ("GET", f"/v1/sessions/{self.session}"))
            else:
                await self._turn()
            await asyncio.sleep(max(0.0, began + _EVERY_SECONDS - time.monotonic()))

    async def _timed(self, into: list[float], *asked: tuple[str, str]) -> None:
        for method, path in asked:
            began = time.monotonic()
            got = await self._ask(method, path)
            if got is not None:
                into.append(time.monotonic() - began)

    async def _turn(self) -> None:
        began = time.monotonic()
        sent = await self._ask("POST", f"/v1/sessions/{self.session}/messages", json={"text": "quick"})
        path = f"/v1/sessions/{self.session}/result?wait=20"
        if sent is not None and await self._ask("GET", path) is not None:
            self.turns.append(time.monotonic() - began)

    async def _ask(self, method: str, path: str, **options: Any) -> httpx2.Response | None:
        try:
            got = await self.client.request(method, path, **options)
        except httpx2.TransportError as exc:
            self.failures.append(repr(exc))
            return None
        if got.status_code >= 400:
            self.failures.append(f"{method} {path}: {got.status_code} {got.text[:200]}")
            return None
        return got


def measure(
    folder: Path, seconds: float, environment: Mapping[str, str] | None = None, *, priority: int = _LOWEST_PRIORITY
) -> dict[str, Any]:
    """`environment`: settings of the server. `priority`: of the attackers, as `nice` has it."""
    folders = [folder / name for name in ("server", "beside")]
    for each in folders:
        each.mkdir()
    with ServingProcess(folders[0], app="fuzz.load_app:app", environment=environment) as server:
        figures = asyncio.run(_measure(server, folders[1], seconds, priority))
        figures["is_alive"] = server.process.poll() is None
        figures["log_bytes"] = len(server.err)
    figures["failures"] += [] if figures["is_alive"] else ["the server ended"]
    return figures


async def _measure(server: ServingProcess, beside: Path, seconds: float, priority: int) -> dict[str, Any]:
    calm = max(2.0, seconds / 4)
    key = await _key(server, "bystander")
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=server.place.url, headers=headers, timeout=60) as client:
        first, *phases = (Bystander(client) for _ in range(5))
        for each in (first, *phases):
            await each.begin()
        before, busy, during, after = phases
        await first.go_on(time.monotonic() + 1.0)  # what a server makes ready with its first requests
        await before.go_on(time.monotonic() + calm)
        with ServingProcess(beside, app="fuzz.load_app:app") as another:
            await _attacked(another, busy, calm, priority)
        await asyncio.sleep(1.0)
        answers = await _attacked(server, during, seconds, priority)
        await asyncio.sleep(1.0)
        await after.go_on(time.monotonic() + calm)
    return _figures(seconds, phases, answers)


async def _attacked(server: ServingProcess, bystander: Bystander, seconds: float, priority: int) -> dict[str, int]:
    """What the attackers of this server were answered, while the bystander goes on."""
    attack = _attack(server.place.url, await _key(server, "greedy"), seconds, priority)
    await bystander.go_on(time.monotonic() + seconds)
    return json.loads((await asyncio.to_thread(attack.communicate))[0])


def _figures(seconds: float, phases: Sequence[Bystander], answers: dict[str, int]) -> dict[str, Any]:
    before, busy, during, after = phases
    attacked = _quantile(during.requests, 0.99)
    alone = _quantile([*before.requests, *after.requests], 0.99)
    return {
        "seconds": seconds,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "requests": {name: _told(each.requests) for name, each in zip(_PHASES, phases, strict=True)},
        "turns": {name: _told(each.turns) for name, each in zip(_PHASES, phases, strict=True)},
        "times": round(attacked / alone, 2),
        "times_beside": round(attacked / _quantile(busy.requests, 0.99), 2),
        "aim": _AIM,
        "failures": [each for phase in phases for each in phase.failures][:20],
        "attack": answers,
    }


_PHASES = ("before", "beside", "during", "after")


def _told(seconds: Sequence[float]) -> dict[str, Any]:
    return {"count": len(seconds), **{f"p{at}_ms": round(_quantile(seconds, at / 100) * 1_000, 1) for at in (50, 99)}}


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


async def _key(server: ServingProcess, owner: str) -> str:
    async with server.client() as admin:
        return (await admin.post("/v1/keys", json={"owner_id": owner, "name": "load"})).json()["key"]


def _attack(url: str, key: str, seconds: float, priority: int) -> "subprocess.Popen[str]":
    command = ["nice", "-n", str(priority), sys.executable, "-m", "fuzz.attack", url, key, str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.exit(main())
