"""`outlast worker` processes that a test starts, stops, freezes and kills."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
APP = "tests.support.apps.shared_app:app"


@dataclass
class Workers:
    """Workers of an app on one database; none is left when the test ends."""

    database: str
    folder: Path
    app: str = APP
    _started: list[asyncio.subprocess.Process] = field(default_factory=list[asyncio.subprocess.Process])

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "OUTLAST_TEST_DATABASE": self.database,
            "OUTLAST_TEST_FOLDER": str(self.folder),
            "OUTLAST_LOG_LEVEL": "warning",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }

    async def start(self, *options: str, **environment: str) -> asyncio.subprocess.Process:
        """Returns when it is ready to take work."""
        with (self.folder / "workers.log").open("ab") as log:
            start = log.tell()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "outlast", "worker", self.app, *options),
                env={**self.environment, **environment},
                cwd=ROOT,
                stderr=log,
            )
        self._started.append(process)
        said = self.folder / "workers.log"
        await until(lambda: process.returncode is not None or b"is ready" in said.read_bytes()[start:])
        assert process.returncode is None, said.read_text()
        return process

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        process.kill()
        await process.wait()

    async def close(self) -> None:
        for each in self._started:
            if each.returncode is None:
                each.send_signal(signal.SIGCONT)
                each.kill()
                await each.wait()

    def effects(self, what: str) -> list[int]:
        """The processes in which it happened."""
        path = self.folder / "effects"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.split()[0] == what]

    def open_gate(self) -> None:
        (self.folder / "open").touch()


@asynccontextmanager
async def workers_of(database: str, folder: Path, app: str = APP) -> AsyncGenerator[Workers]:
    workers = Workers(database, folder, app)
    try:
        yield workers
    finally:
        await workers.close()


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it looks at is in other processes
            await asyncio.sleep(0.02)
