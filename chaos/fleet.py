"""Real `outlast` processes on one PostgreSQL, as an operator starts them: servers that only accept, and workers."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from outlast.cli.server_file import ServerFile, ServerPlace

ROOT = Path(__file__).parents[1]
READY_SECONDS = 120.0
LEAVE_SECONDS = 30.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Member:
    """One process. What it says on stderr is in its folder."""

    name: str
    process: asyncio.subprocess.Process
    folder: Path
    place: ServerPlace | None = None
    """Where it can be reached, if it is a server."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.returncode is None

    @property
    def said(self) -> str:
        return log_of(self.folder).read_text(errors="replace")

    @property
    def url(self) -> str:
        assert self.place is not None
        return self.place.url

    @property
    def token(self) -> str:
        assert self.place is not None
        return self.place.token


def log_of(folder: Path) -> Path:
    return folder / "stderr.log"


class NotReady(Exception):
    """A process ended, or said nothing, before it could be used."""


class Fleet:
    """`async with Fleet(...)`: whatever happens, all of them are ended and collected on leaving."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.members: list[Member] = []
        self._folder = folder
        own = {key: value for key, value in os.environ.items() if not key.startswith("OUTLAST_")}
        self._environment = {**own, "OUTLAST_LOG_LEVEL": "warning", "PYTHONPATH": str(ROOT), **environment}

    async def api(self, name: str, app: str, *, port: int = 0) -> Member:
        """A server that runs no work, on a free port unless told; it can be reached when this returns."""
        member = await self._start(name, "serve", app, "--no-worker", "--port", str(port), says="Outlast serves")
        [path] = member.folder.glob("*.server.json")
        found = Member(name, member.process, member.folder, ServerFile(path).read())
        self.members[self.members.index(member)] = found
        return found

    async def worker(self, name: str, app: str) -> Member:
        """A worker that is ready to take work. It leaves by itself when this process is gone."""
        return await self._start(name, "worker", app, "--exit-with-parent", says="is ready")

    async def run(self, name: str, *arguments: str) -> str:
        """A command that ends by itself, and well; what it said."""
        member = await self._spawn(name, *arguments)
        if await member.process.wait() != 0:
            raise NotReady(f"{name} ended with {member.process.returncode}: {member.said[-2_000:]}")
        return member.said

    async def kill(self, member: Member) -> None:
        """SIGKILL: it gets no chance to say or save anything."""
        member.process.kill()
        await member.process.wait()

    async def leave(self, member: Member) -> int:
        """SIGTERM, as a deploy sends it; the exit code. One that does not leave in time is killed."""
        if member.is_running:
            member.process.terminate()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                return await member.process.wait()
        except TimeoutError:
            await self.kill(member)
            return -signal.SIGKILL

    async def __aenter__(self) -> "Fleet":
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(self.leave(each) for each in self.members if each.is_running))

    async def _start(self, name: str, *arguments: str, says: str) -> Member:
        member = await self._spawn(name, *arguments)
        try:
            async with asyncio.timeout(READY_SECONDS):
                while says not in member.said:
                    if not member.is_running:
                        raise NotReady(f"{name} ended with {member.process.returncode}: {member.said[-2_000:]}")
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as exc:
            raise NotReady(f"{name} is not ready after {READY_SECONDS:g} s: {member.said[-2_000:]}") from exc
        return member

    async def _spawn(self, name: str, *arguments: str) -> Member:
        folder = self._folder / name.replace(" ", "-")
        folder.mkdir()
        with log_of(folder).open("ab") as log:
            # A session of its own: Ctrl-C reaches only this process, which then ends the others itself.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "outlast", *arguments),
                env=self._environment,
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        member = Member(name, process, folder)
        self.members.append(member)
        return member
