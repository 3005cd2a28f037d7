"""`outlast serve` as a process of its own, which a test may kill and start again on the same address."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@dataclass
class ServerProcess:
    """A server of the app in `app` (`module:name`), with its database in a folder of the test's own."""

    app: str
    database: Path
    port: int = field(default_factory=free_port)
    _process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def token(self) -> str:
        return json.loads(self.database.with_name(f"{self.database.name}.server.json").read_text())["token"]

    async def start(self) -> None:
        """Returns when it answers."""
        environment = {
            **os.environ,
            "OUTLAST_TEST_DATABASE": str(self.database),
            "OUTLAST_LOG_LEVEL": "warning",
            "PYTHONPATH": str(ROOT),
        }
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "outlast", "serve", self.app, "--port", str(self.port)),
            env=environment,
            cwd=ROOT,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with httpx2.AsyncClient(base_url=self.url) as client:
            while self._process.returncode is None:
                try:
                    if (await client.get("/readyz")).status_code == 200 and self._has_announced():
                        return
                except httpx2.TransportError:
                    await asyncio.sleep(0.05)
        raise AssertionError(f"the server ended with {self._process.returncode}")

    async def kill(self) -> None:
        """SIGKILL: nothing is said goodbye to."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    def _has_announced(self) -> bool:
        return self.database.with_name(f"{self.database.name}.server.json").exists()
