"""The command line: `python -m fuzz [--cases N] [--seed S]`: schemathesis, stateful, against a real server."""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import httpx2

from fuzz.states import fill
from tests.support.processes.serving_process import ServingProcess

_EXAMPLES, _FEW = 40, 1_000
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Send nonsense; look for 5xx and broken schemas."
    )
    parser.add_argument("--cases", type=int, default=10_000, help="how many requests at least (default: 10,000)")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--report", type=Path, default=None, help="where to keep the totals, as JSON")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        totals = Fuzz(Path(folder), seed).run(given.cases)
    print(json.dumps(totals, indent=2))
    if given.report is not None:
        given.report.write_text(json.dumps(totals, indent=2) + "\n")
    return 0 if totals["failures"] == 0 and totals["cases"] >= given.cases else 1


class Fuzz:
    """A server process of its own, filled once; rounds of schemathesis until there were enough cases."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed

    def run(self, cases: int) -> dict[str, Any]:
        began = time.monotonic()
        with ServingProcess(self._folder, app="fuzz.app:app") as server:
            totals = self._rounds(server.place.url, asyncio.run(_key(server)), cases)
            totals["is_alive"] = httpx2.get(f"{server.place.url}/readyz").status_code == 200
        totals["failures"] += not totals["is_alive"]
        totals["internal_errors_logged"] = server.err.count("a request failed")
        totals["failures"] += totals["internal_errors_logged"]
        return {"seed": self._seed, **totals, "seconds": round(time.monotonic() - began, 1)}

    def _rounds(self, url: str, key: str, cases: int) -> dict[str, Any]:
        totals: dict[str, Any] = {"cases": 0, "failures": 0, "by_status": {}}
        rounds = 0
        while totals["cases"] < cases and not totals["failures"]:
            self._name_what_is_there(asyncio.run(_fill(url, key)))
            self._round(url, key, totals, seed=self._seed + rounds, examples=_EXAMPLES if cases > _FEW else 1)
            rounds += 1
        return totals

    def _name_what_is_there(self, found: dict[str, list[str]]) -> None:
        """Four ids in five are of something that exists: nonsense should also meet what is there."""
        lines = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n" for name, values in found.items() if values]
        names = {**{name: name for name in found}, "chat_id": "session_id"}
        bound = [
            f'"path.{name}" = {{ dictionary = "{words}", probability = 0.8 }}'
            for name, words in names.items()
            if found[words]
        ]
        (self._folder / "schemathesis.toml").write_text("\n".join([*lines, "[parameters]", *bound]) + "\n")

    def _round(self, url: str, key: str, totals: dict[str, Any], *, seed: int, examples: int) -> None:
        report = self._folder / "report.ndjson"
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
                *("--checks", ",".join(CHECKS), "--header", f"Authorization: Bearer {key}"),
                *("--phases", "examples,coverage,fuzzing,stateful", "--max-examples", str(examples)),
                *("--seed", str(seed), "--report", "ndjson", "--report-ndjson-path", str(report)),
                *("--request-timeout", "30", "--continue-on-failure", "--no-color", "--suppress-health-check", "all"),
            ],
            cwd=self._folder,  # it keeps what failed where it runs
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            totals["failures"] += 1
            print(ran.stdout[-20_000:], ran.stderr[-5_000:])
        _count(report, totals)


def _count(report: Path, totals: dict[str, Any]) -> None:
    """Requests that were really sent and answered, by status."""
    for line in report.read_text().splitlines():
        for status in _statuses(json.loads(line)):
            totals["cases"] += 1
            totals["by_status"][str(status)] = totals["by_status"].get(str(status), 0) + 1


def _statuses(value: Any) -> list[int]:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        if "status_code" in fields and "headers" in fields:
            return [fields["status_code"]]
        return [each for part in fields.values() for each in _statuses(part)]
    if isinstance(value, list):
        return [each for part in cast(list[Any], value) for each in _statuses(part)]
    return []


async def _key(server: ServingProcess) -> str:
    """A key of an ordinary owner."""
    async with server.client() as admin:
        return (await admin.post("/v1/keys", json={"owner_id": "fuzz", "name": "fuzz"})).json()["key"]


async def _fill(url: str, key: str) -> dict[str, list[str]]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30) as client:
        return await fill(client)


if __name__ == "__main__":
    sys.exit(main())
