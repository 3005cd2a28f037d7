"""`/readyz`: whether this server can do what it promises, judged by what is there, not by what was (I2)."""

import shutil
from pathlib import Path

import pytest

from outlast.cli.verbs import doctor
from outlast.client import Client
from outlast.errors import StoreUnavailable
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, scripted


async def _what_is_wrong(client: Client) -> str:
    first = await anext(aiter(doctor._findings(client)))  # pyright: ignore[reportPrivateUsage]
    assert first.id == "server"
    return first.problem


def _take_away(path: Path, *, is_replaced: bool) -> None:
    if is_replaced:
        shutil.copy(path, f"{path}.new")
        Path(f"{path}.new").replace(path)
    else:
        path.unlink()


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
async def test_a_file_of_the_database_that_is_gone_is_noticed(runtime: Runtime, suffix: str, is_replaced: bool) -> None:
    """P1, I2: what is written to a file without a name is lost with the process; a new lock keeps nobody out."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as ada:
        await (await ada.sessions.create()).ask("Hi.")
        await ada.check()
        path = Path(f"{runtime.database}{suffix}")
        _take_away(path, is_replaced=is_replaced)
        answer = await (await server.client()).get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert path.name in answer.json()["detail"]
        with pytest.raises(StoreUnavailable, match="restart"):
            await ada.check()
        assert path.name in await _what_is_wrong(ada)


async def test_a_file_store_that_takes_nothing_is_noticed(runtime: Runtime) -> None:
    """I2: large results would wait for it for ever."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as ada:
        await ada.check()
        shutil.rmtree(runtime.files, ignore_errors=True)
        runtime.files.write_text("not a folder")
        answer = await (await server.client()).get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert "cannot be used" in answer.json()["detail"]
        assert "cannot be used" in await _what_is_wrong(ada)
        runtime.files.unlink()
        await ada.check()


async def test_a_server_says_how_many_workers_it_sees(runtime: Runtime) -> None:
    """I2: one process on a file is its own worker."""
    async with serving(runtime(scripted("Hello."))) as server:
        answer = await (await server.client()).get("/readyz")
        assert answer.json() == {"status": "ready", "workers": 1}
