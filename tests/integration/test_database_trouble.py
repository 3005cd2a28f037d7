"""PostgreSQL goes away, comes back, cuts connections, has none left: 503 meanwhile, nothing lost, healed by itself."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import Request
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ModelResponse

import outlast
from outlast import Client, hints
from outlast.api.auth import Principal
from outlast.testing import ScriptedModel, call, gate, text, texts_seen
from outlast.testing.step import Step
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Frame, Served, serving
from tests.support.network.sse_reader import SseReader, reading
from tests.support.processes.serving_process import complaint
from tests.support.stores.postgres import installed_postgres
from tests.support.stores.troubled_postgres import TroubledPostgres
from tests.support.turns.runtime import Runtime

SAID = ["Half ", "a ", "long ", "sentence."]
WITHOUT_DATABASE = {
    ("post", "/v1/login/links"),
    ("post", "/v1/logout"),
    ("get", "/v1/agents"),
    ("get", "/v1/tools"),
    ("get", "/healthz"),
    ("put", "/v1/connections/{provider}"),
    ("post", "/v1/connections/rekey"),
    ("post", "/v1/webhooks"),
    ("post", "/v1/webhooks/{webhook_id}/rotate"),
    ("post", "/v1/schedules/preview"),
    ("get", "/v1/me"),
}
"""What a process knows by itself; that it has no encryption key, too."""
DOCUMENT: dict[str, Any] = {"format": "outlast.session/1", "session": {}, "messages": []}
PARAMETERS: dict[tuple[str, str], dict[str, str]] = {
    ("post", "/v1/sessions/{session_id}/files"): {"name": "notes.txt"},
    ("get", "/v1/tasks/{task_id}/output/search"): {"text": "metres"},
}
IDS = {
    "input_id": "inp_1",
    "call_id": "c1",
    "key_id": "key_1",
    "provider": "github",
    "rule_id": "rul_1",
    "file_id": f"fil_01m7v2q22w378fz050srggj20t_{0:064x}",
    "turn_id": "trn_1",
    "number": "1",
    "schedule_id": "sch_1",
    "webhook_id": "whk_1",
    "delivery_id": "dlv_1",
}
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/v1/sessions"): {},
    ("post", "/v1/sessions/import"): DOCUMENT,
    ("patch", "/v1/sessions/{session_id}"): {"title": "New"},
    ("post", "/v1/sessions/{session_id}/fork"): {},
    ("post", "/v1/sessions/{session_id}/messages"): {"text": "refused"},
    ("patch", "/v1/sessions/{session_id}/inbox/{input_id}"): {"text": "changed"},
    ("post", "/v1/sessions/{session_id}/stop"): {},
    ("post", "/v1/sessions/{session_id}/calls/{call_id}/settle"): {"verdict": "worked"},
    ("post", "/v1/sessions/{session_id}/tasks"): {"tool": "wait"},
    ("post", "/v1/tasks/{task_id}/cancel"): {},
    ("post", "/v1/tasks/{task_id}/reply"): {"value": "yes"},
    ("post", "/v1/tasks/{task_id}/approve"): {},
    ("post", "/v1/tasks/{task_id}/refuse"): {},
    ("post", "/v1/tasks/{task_id}/complete"): {"success": True},
    ("post", "/v1/tasks/{task_id}/settle"): {"verdict": "worked"},
    ("post", "/v1/keys"): {"owner_id": "bob", "name": "test"},
    ("post", "/v1/schedules"): {"session_id": "ses_1", "text": "refused", "cron": "0 9 * * *"},
    ("patch", "/v1/schedules/{schedule_id}"): {"text": "changed"},
    ("patch", "/v1/webhooks/{webhook_id}"): {"url": "https://example.com/hook"},
    ("post", "/api/chat"): {
        "id": "chat-1",
        "trigger": "submit-message",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "refused"}]}],
    },
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[TroubledPostgres]:
    """With room for few connections, so that they can be used up."""
    few = {"max_connections": "24", "superuser_reserved_connections": "0"}
    with installed_postgres(settings=few) as installation:
        yield TroubledPostgres(installation)


async def anybody(_: Request) -> Principal:
    """Known without a look at the database: what is refused is refused by the route itself."""
    return Principal("ada", role="admin")


@dataclass
class World:
    """A server on a troubled PostgreSQL. Its agent stops between words, and in a tool that is parked."""

    postgres: TroubledPostgres
    database: str
    between: list[Checkpoint] = field(default_factory=lambda: [Checkpoint() for _ in SAID[1:]])
    in_tool: Checkpoint = field(default_factory=Checkpoint)
    _served: Served | None = None

    @property
    def served(self) -> Served:
        assert self._served is not None
        return self._served

    @asynccontextmanager
    async def serve(self, folder: Path, **settings: Any) -> AsyncGenerator[httpx2.AsyncClient]:
        runtime = Runtime(self.postgres.url(self.database), files=str(folder / "files"))
        tool = Tool(self.survey, metadata=hints(budget=0.01))
        async with serving(
            runtime(ScriptedModel(self.reply), tools=[tool], wake_company=timedelta(0), **settings),
            authenticate=anybody,
        ) as self._served:
            yield self.served.with_headers({})

    def reply(self, messages: list[ModelMessage]) -> Step:
        asked = texts_seen(messages)
        if asked[-1] == "talk":
            gates = [gate(each) for each in self.between]
            return [text(SAID[0]), *(each for pair in zip(gates, map(text, SAID[1:]), strict=True) for each in pair)]
        if asked[0] != "survey":
            return [f"Heard: {asked[-1]}"]
        answered = sum(isinstance(each, ModelResponse) for each in messages)
        return [[call("survey")], ["It is running."], ["It is 12 metres."]][answered]

    async def survey(self) -> str:
        outlast.output("measuring\n")
        await self.in_tool()
        outlast.output("done\n")
        return "12 metres"

    def open(self) -> None:
        for each in (*self.between, self.in_tool):
            each.open()


@pytest.fixture
async def world(postgres: TroubledPostgres) -> World:
    return World(postgres, await postgres.new_database())


async def begin(client: httpx2.AsyncClient, words: str) -> str:
    """A new session with a message; its path."""
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    accepted = await client.post(f"/v1/sessions/{session}/messages", json={"text": words})
    assert accepted.status_code == 202, accepted.text
    return f"/v1/sessions/{session}"


async def log_of(client: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    return (await client.get(f"{path}/events")).json()["items"]


def refused(answer: httpx2.Response) -> str:
    """The detail of an answer that says to try again."""
    assert answer.status_code == 503, (answer.request.url, answer.status_code, answer.text)
    assert int(answer.headers["Retry-After"]) >= 1
    problem = answer.json()
    assert (answer.headers["content-type"], problem["code"]) == ("application/problem+json", "store_unavailable")
    assert "try again" in problem["detail"].lower()
    return problem["detail"]


async def check_all_refused(world: World, client: httpx2.AsyncClient, **ids: str) -> None:
    """Every route that needs the database says so; whoever adds one is asked for its body here."""
    token = (await client.post("/v1/login/links")).json()["token"]
    bodies = {**BODIES, ("post", "/v1/login"): {"token": token}}
    paths: dict[str, dict[str, Any]] = world.served.app.openapi()["paths"]
    for path, methods in paths.items():
        for method in methods:
            if (method, path) not in WITHOUT_DATABASE:
                url = path.format_map({**IDS, **ids})
                asked, body = PARAMETERS.get((method, path)), bodies.get((method, path))
                refused(await client.request(method, url, json=body, params=asked))
    assert (await client.get("/healthz")).status_code == 200


def has(type_: str) -> Callable[[list[Frame]], bool]:
    return lambda told: any(each.data.get("type") == type_ for each in told)


def is_whole(told: list[Frame]) -> bool:
    return bool(told) and told[-1].event == "end"


def text_of(events: list[dict[str, Any]]) -> str:
    """The words of the first part, joined by their offsets: a gap or a repeat fails."""
    joined = ""
    for each in events:
        if each["type"] == "part.delta" and each["data"]["part"].endswith("1.0"):
            assert each["data"]["offset"] == len(joined), each
            joined += each["data"]["text"]
    return joined


async def healed(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(30):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110 - the database says when
            await asyncio.sleep(0.02)


def check_exact(reader: SseReader, log: list[dict[str, Any]]) -> None:
    """What a reader was told over the trouble is what the log has."""
    numbers = [each["number"] for each in reader.events]
    assert numbers == sorted(set(numbers)), "told twice, or out of order"
    assert text_of(reader.events) == "".join(SAID)
    states = [each["type"] for each in reader.events if not each["type"].startswith("part.")]
    assert states == [each["type"] for each in log if not each["type"].startswith("part.")]
    assert states.count("turn.completed") == states.count("turn.started") == 1
    assert "turn.resumed" not in states, "nobody may take a worker for dead because the database was away"


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_everything_waits_while_postgresql_is_down_and_goes_on_after_it(
    world: World, tmp_path: Path, mode: str
) -> None:
    """P1, P3, P4, DESIGN 4: refused meanwhile; streams, turns, tasks and clients go on where they were."""
    async with world.serve(tmp_path) as client, Client(world.served.url, "any", patience=60) as ada:
        talk, survey = await begin(client, "talk"), await begin(client, "survey")
        await world.between[0].reached()
        await client.get(f"{survey}/result", params={"wait": 10})
        (task,) = (await client.get("/v1/tasks")).json()["items"]
        other = await ada.sessions.create()
        async with (
            reading(client, f"{talk}/events") as words,
            reading(client, f"/v1/tasks/{task['id']}/output") as output,
            reading(client, "/v1/events") as feed,
        ):
            await words.until(has("part.delta"))
            await output.until(bool)
            await feed.until(has("task.created"))
            waiting = asyncio.create_task(client.get(f"{talk}/result", params={"wait": 30}))
            session_id = talk.rpartition("/")[2]
            async with world.postgres.down(mode):
                sending = asyncio.create_task(other.send("Are you there?"))
                await check_all_refused(world, client, session_id=session_id, chat_id=session_id, task_id=task["id"])
                world.open()
                refused(await client.post(f"{talk}/messages", json={"text": "refused"}))
                assert [each.is_over for each in (words, output, feed)] == [False] * 3
            await healed(client)

            await words.until(has("turn.completed"))
            await output.until(is_whole)
            await feed.until(lambda told: sum(each.data["type"] == "turn.completed" for each in told) == 4)
            await (await sending).outcome(wait=30)
            await asyncio.wait({waiting})
        assert "".join(each.data["text"] for each in output.told[:-1]) == "measuring\ndone\n"
        assert output.told[-1].data["state"] == "succeeded"
        check_exact(words, await log_of(client, talk))
        surveyed = [each["type"] for each in await log_of(client, survey)]
        assert (surveyed.count("task.ended"), surveyed.count("turn.completed")) == (1, 2), "told and woken once"
        assert "turn.resumed" not in surveyed
        await client.post(f"{talk}/messages", json={"text": "And now?"})
        again = (await client.get(f"{talk}/result", params={"wait": 30})).json()
        assert again["text"] == "Heard: And now?"
        accepted = [each["data"]["text"] for each in await log_of(client, talk) if each["type"] == "input.accepted"]
        assert accepted == ["talk", "And now?"], "what was refused is nowhere"
        log = await log_of(client, f"/v1/sessions/{other.id}")
        assert [each["data"]["text"] for each in log if each["type"] == "input.accepted"] == ["Are you there?"]


async def test_cut_connections_are_not_noticed(world: World, tmp_path: Path) -> None:
    """P4, P5: every connection is ended between words, again and again; the text is exact, nobody is taken for dead."""
    async with world.serve(tmp_path) as client:
        talk = await begin(client, "talk")
        async with reading(client, f"{talk}/events") as words:
            for at, each in enumerate(world.between, 1):
                await each.reached()
                await words.until(lambda told, at=at: text_of([each.data for each in told]) == "".join(SAID[:at]))
                assert await world.postgres.cut(world.database) >= 4
                each.open()
            await words.until(has("turn.completed"))
        check_exact(words, await log_of(client, talk))


async def test_a_pool_that_is_used_up_is_said_and_comes_back(world: World, tmp_path: Path) -> None:
    """P1: two slow transactions hold all connections of a process; others are refused, and the two are kept."""
    wait = timedelta(milliseconds=300)
    async with world.serve(tmp_path, database_connections=2, connection_wait=wait) as client:
        slow = await begin(client, "hello")
        await client.get(f"{slow}/result", params={"wait": 30})
        async with reading(client, f"{slow}/events") as words, world.postgres.connected(world.database) as holder:
            await words.until(has("turn.completed"))
            holding = holder.transaction()
            await holding.start()
            await holder.execute("SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE", slow.rpartition("/")[2])
            said = ["one", "two"]
            sending = [asyncio.create_task(client.post(f"{slow}/messages", json={"text": each})) for each in said]
            await _both_wait(world)
            for path in (slow, "/v1/sessions", "/readyz"):
                assert "connections" in refused(await client.get(path))
            assert not words.is_over
            await holding.rollback()
            assert [(await each).status_code for each in sending] == [202, 202]
            await healed(client)
            await words.until(lambda told: sum(has("input.delivered")([each]) for each in told) == 3)
        accepted = [each["data"]["text"] for each in await log_of(client, slow) if each["type"] == "input.accepted"]
        assert sorted(accepted) == ["hello", "one", "two"]


async def _both_wait(world: World) -> None:
    """Both connections of the pool wait for the lock, and nobody else has one."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'"
    async with world.postgres.connected() as connection, asyncio.timeout(30):
        while await connection.fetchval(query, world.database) < 2:  # noqa: ASYNC110 - PostgreSQL tells nobody
            await asyncio.sleep(0.02)


async def test_a_server_without_free_connections_is_said_and_comes_back(world: World, tmp_path: Path) -> None:
    """P1, P4: others have all that PostgreSQL allows; then they leave, and what waited goes on."""
    async with world.serve(tmp_path) as client:
        talk = await begin(client, "talk")
        await world.between[0].reached()
        async with reading(client, f"{talk}/events") as words:
            await words.until(has("part.delta"))
            async with world.postgres.used_up(world.database):
                for path in (talk, "/v1/sessions", "/readyz"):
                    assert "connections" in refused(await client.get(path))
                world.open()
                refused(await client.post(f"{talk}/messages", json={"text": "refused"}))
            await healed(client)
            await words.until(has("turn.completed"))
        check_exact(words, await log_of(client, talk))


def test_a_process_without_its_server_says_where_it_looked_and_why(tmp_path: Path) -> None:
    """I2, K1: host, port, reason and what to do, an exit code, and never the password."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
    url = f"postgresql://ada:hidden@{place}/outlast"
    (tmp_path / "app.py").write_text(
        f"from outlast import Outlast\nfrom pydantic_ai import Agent\napp = Outlast(Agent('test'), database={url!r})\n"
    )
    said = complaint(tmp_path, "worker", "app.py", code=1)
    assert f"PostgreSQL at {place} cannot be used: [Errno 111]" in said
    assert "Check that it runs" in said
    assert "hidden" not in said


async def test_a_server_that_only_reads_is_waited_for(world: World, tmp_path: Path) -> None:
    """P1, P3, I2: a primary that has become a standby. What ends meanwhile is told when it may write again."""
    async with world.serve(tmp_path) as client:
        talk, survey = await begin(client, "talk"), await begin(client, "survey")
        await client.get(f"{survey}/result", params={"wait": 10})
        await world.between[0].reached()
        async with world.postgres.read_only():
            async with asyncio.timeout(20):  # connections hear of it one after the other
                while (await client.get("/readyz")).status_code != 503:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            refused = await client.post(f"{talk}/messages", json={"text": "meanwhile"})
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            world.open()
            await asyncio.sleep(0.5)
        await healed(client)
        for path, said in ((talk, "".join(SAID)), (survey, "It is 12 metres.")):
            settled = (await client.get(f"{path}/result", params={"wait": 30, "until": "settled"})).json()
            assert (settled["state"], settled["text"]) == ("completed", said)
        types = [each["type"] for each in await log_of(client, talk)]
        assert "turn.resumed" not in types


async def test_a_worker_that_leaves_while_nothing_can_be_written_has_left(world: World, tmp_path: Path) -> None:
    """P5: nothing goes on to say that it lives, so others take up what it ran."""
    async with world.serve(tmp_path) as client:
        await begin(client, "talk")
        await world.between[0].reached()
        async with world.postgres.read_only():
            await world.served.outlast.__aexit__(None, None, None)
            assert [each for each in threading.enumerate() if each.name == "outlast presence"] == []
        world.open()
