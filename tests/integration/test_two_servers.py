"""Two servers that only answer, and workers beside them, on one PostgreSQL: a client may talk with either."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from outlast import Client, Event
from outlast.errors import Unauthenticated
from tests.integration.test_workers import WHOLE, texts
from tests.support.processes.serving_process import ServingProcess
from tests.support.processes.worker_process import APP, Workers, workers_of

pytestmark = pytest.mark.timeout(180)  # several interpreters start, on machines that may be busy


@pytest.fixture
async def workers(ready_postgres_url: str, tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers_of(ready_postgres_url, tmp_path) as found:
        yield found


@pytest.fixture
def servers(workers: Workers, tmp_path: Path) -> Iterator[list[ServingProcess]]:
    ours = {key: value for key, value in workers.environment.items() if key.startswith("OUTLAST_TEST_")}
    with ExitStack() as stack:
        started: list[ServingProcess] = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            started.append(ServingProcess(folder, "--no-worker", app=APP, environment=ours))
        yield [stack.enter_context(each) for each in started]


def client(server: ServingProcess) -> Client:
    return Client(server.place.url, server.place.token)


async def test_a_key_that_is_revoked_at_one_server_ends_its_streams_at_another(servers: list[ServingProcess]) -> None:
    """G1: at once, wherever they are, and those of cookies that were made with it."""
    async with client(servers[0]) as here:
        made, text = await here.keys.make("ada", "spare")
        url = servers[1].place.url
        async with Client(url, text) as there, Client(url, await cookie_of(url, text)) as browser:
            session = await there.sessions.create()
            async with session.events() as stream, (await browser.sessions.get(session.id)).events() as cookie_s:
                await anext(stream)
                await anext(cookie_s)
                await here.keys.revoke(made.id)
                for each in (stream, cookie_s):
                    with pytest.raises(Unauthenticated):
                        await anext(each)


async def cookie_of(url: str, key: str) -> str:
    """What a browser's cookie holds after it followed a link that was made with the key."""
    async with httpx2.AsyncClient(base_url=url) as browser:
        link = await browser.post("/v1/login/links", headers={"Authorization": f"Bearer {key}"})
        await browser.post("/v1/login", json={"token": link.json()["token"]})
        (text,) = browser.cookies.values()
        return text


async def test_a_client_goes_over_to_another_server_while_the_worker_of_its_turn_is_killed(
    workers: Workers, servers: list[ServingProcess]
) -> None:
    """P4, P5: begun at one server on one worker, read to its end at another while a second worker ends it."""
    first = await workers.start()
    told: list[Event] = []
    async with client(servers[0]) as here, client(servers[1]) as there:
        session = await here.sessions.create()
        await session.send("talk")
        async with session.events() as stream:
            async for event in stream:
                told.append(event)
                if event.type == "part.delta" and len(told) > 40:
                    await workers.kill(first)
                    break
        servers[0].kill()
        second = await workers.start()
        same = await there.sessions.get(session.id)
        async with same.events(after=told[-1].number or 0) as stream:
            async for event in stream:
                told.append(event)
                if event.type in ("turn.completed", "turn.failed"):
                    break
        outcome = await same.result(wait=30)
    assert outcome is not None
    assert (outcome.state, second.returncode) == ("completed", None)
    assert "".join(texts(told).values()) == WHOLE
    numbers = [event.number or 0 for event in told]
    assert numbers == sorted(set(numbers))
    assert [event.data["attempt"] for event in told if event.type == "turn.resumed"] == [2]
