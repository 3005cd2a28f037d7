"""M10: what a server costs that does nothing: a thousand idle sessions, and a hundred schedules that are not due."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.measure import Report, Target
from bench.server_process import Place, serving

ID = "M10"
_SESSIONS = 1_000
_SCHEDULES = 100
_SECONDS = 20.0


def run() -> Report:
    report = Report(
        ID, "a server with 1,000 idle sessions and 100 schedules", "SQLite file, WAL, full", columns=("what", "value")
    )
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as place:
        asyncio.run(_fill(place))
        time.sleep(1)
        before = place.process.cpu_times()
        time.sleep(_SECONDS)
        after = place.process.cpu_times()
        memory = place.process.memory_info().rss / 2**20
    percent = (after.user + after.system - before.user - before.system) / _SECONDS * 100
    report.rows = [("of a core", f"{percent:.2f} %"), ("memory", f"{memory:.0f} MB")]
    report.numbers = {"percent_of_a_core": percent, "memory_mb": memory}
    report.targets = [Target("percent of a core", percent, 1, is_most=True)]
    return report


async def _fill(place: Place) -> None:
    async with place.client() as client:
        made = list[str]()
        for _ in range(0, _SESSIONS, 20):
            found = await asyncio.gather(*(client.post("/v1/sessions", json={}) for _ in range(20)))
            made = [str(each.json()["id"]) for each in found]
        for at in range(_SCHEDULES):
            body = {"session_id": made[at % len(made)], "text": "Look.", "cron": "0 3 1 1 *", "zone": "Europe/Berlin"}
            (await client.post("/v1/schedules", json=body)).raise_for_status()
