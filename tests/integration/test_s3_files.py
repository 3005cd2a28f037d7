"""Files in a local folder and in an S3-compatible store over HTTP: the same contract, and clear words at the start."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.errors import InvalidInput, StoreUnavailable
from outlast.ids import SessionId
from outlast.store.files import object_store
from outlast.store.files.file_store import FileStore
from outlast.testing import ScriptedModel, call
from tests.support.processes.serving_process import ServingProcess, complaint
from tests.support.stores.s3_server import BUCKET, S3Server, running_s3
from tests.support.turns.runtime import Runtime, events_of, scripted

ONE, TWO = SessionId("ses_1"), SessionId("ses_2")
LONG = "the river goes on and on. " * 8_000
APP = f"""
from pydantic_ai import Agent
from outlast import Outlast, Settings
from outlast.testing import ScriptedModel

app = Outlast(Agent(ScriptedModel(lambda _: {LONG!r}), name="agent"), settings=Settings(files="s3://{BUCKET}/app"))
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture
def with_keys(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3


@pytest.fixture(params=["folder", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FileStore(str(tmp_path / "files"))
    request.getfixturevalue("with_keys")
    return FileStore(f"s3://{BUCKET}/{tmp_path.name}")


async def test_what_was_put_is_there_until_its_session_is_removed(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 4, D10: by content and session; removing one touches no other, and again is harmless."""
    monkeypatch.setattr(object_store, "_BATCH", 2)
    await files.check()
    data = [bytes([each]) * 1_000 for each in range(5)]
    keys = [await files.put(ONE, each) for each in data]
    assert len(set(keys)) == 5
    assert await files.put(ONE, data[0]) == keys[0], "the same bytes are kept once"
    other = await files.put(TWO, data[0])
    assert other != keys[0]
    assert [await files.get(each) for each in keys] == data
    for _ in range(2):
        await files.remove_all(ONE)
    with pytest.raises(StoreUnavailable):
        await files.get(keys[0])
    assert await files.get(other) == data[0]
    await files.remove_all(TWO)


async def test_a_large_value_is_spilled_by_one_process_and_read_by_another(with_keys: S3Server, tmp_path: Path) -> None:
    """DESIGN 4: the answer of a turn, written by a server process; nothing of it in the database file."""
    (tmp_path / "app.py").write_text(APP)
    with ServingProcess(tmp_path) as server:
        async with server.client() as client:
            session_id = (await client.post("/v1/sessions", json={})).json()["id"]
            await client.post(f"/v1/sessions/{session_id}/messages", json={"text": "Tell me."})
            result = (await client.get(f"/v1/sessions/{session_id}/result", params={"wait": 30})).json()
        assert result["text"] == LONG
        server.stop()
    assert LONG.encode() in [each.read_bytes() for each in with_keys.kept(f"app/{session_id}")]
    assert LONG.encode() not in (tmp_path / "outlast.db").read_bytes()
    agent = Agent(ScriptedModel(["Again."]), name="agent")
    settings = Settings(files=f"s3://{BUCKET}/app")
    async with Outlast(agent, database=tmp_path / "outlast.db", settings=settings) as outlast:
        session = await outlast.sessions.get(session_id)
        assert str((await session.history())[-1].parts[0]).count("the river goes on") == 8_000
        await outlast.sessions.delete(session_id)
    assert with_keys.kept("app") == []


async def test_a_finished_call_waits_for_a_store_that_is_away(
    with_keys: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2, DESIGN 4: a result that is too large for a row is not lost with the store; the call is not run again."""
    refused, ran, put = asyncio.Event(), list[str](), FileStore.put

    async def watched(self: FileStore, session_id: SessionId, data: bytes) -> str:
        try:
            return await put(self, session_id, data)
        except StoreUnavailable:
            refused.set()
            raise

    async def survey() -> str:
        ran.append("survey")
        await asyncio.to_thread(with_keys.stop)
        return LONG

    monkeypatch.setattr(FileStore, "put", watched)
    model = scripted(call("survey"), "It is long.")
    async with Runtime(tmp_path / "app.db", files=f"s3://{BUCKET}/away")(model, tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Survey it.")
        try:
            await refused.wait()
        finally:
            await asyncio.to_thread(with_keys.start)
        outcome = await sent.outcome(wait=30)
        assert (outcome.state, outcome.text, ran) == ("completed", "It is long.", ["survey"])
        (ended,) = await events_of(session, "call.ended")
        assert ended.data["outcome"] == "success"
    assert LONG.encode() in [each.read_bytes() for each in with_keys.kept("away")]


async def test_a_bucket_that_is_not_there_is_said_at_the_start(with_keys: S3Server, tmp_path: Path) -> None:
    """As people see it: one sentence and an exit code."""
    (tmp_path / "app.py").write_text(APP.replace(BUCKET, "missing"))
    assert "s3://missing/app is not there: make the bucket first" in complaint(
        tmp_path, "serve", "app.py", "--port", "0", code=1
    )


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
async def test_keys_that_are_not_accepted_are_said_at_the_start(
    with_keys: S3Server, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "mistaken")
    with pytest.raises(InvalidInput, match=rf"s3://{BUCKET}/app does not let .* check the keys") as caught:
        await FileStore(f"s3://{BUCKET}/app").check()
    assert "hidden" not in caught.value.message
    assert "mistaken" not in caught.value.message


async def test_an_endpoint_that_does_not_answer_is_said_at_the_start(
    with_keys: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:9.*Check the endpoint"):
        await FileStore(f"s3://{BUCKET}/app").check()


def test_a_url_that_names_no_store_is_said() -> None:
    with pytest.raises(InvalidInput, match="names no store of files"):
        FileStore("ftp://somewhere/else")
