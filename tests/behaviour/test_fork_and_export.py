"""Going on from a history elsewhere: forks, and sessions as JSON documents."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

import outlast as public
from outlast.agents.messages import history
from outlast.errors import IdempotencyMismatch, InvalidInput, NotFound
from outlast.handles import sessions
from outlast.handles.one_session import export
from outlast.testing import call, last_user_text
from tests.support.logs.histories import check_history, outline, return_of
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked
from tests.support.turns.runtime import Runtime, events_of, scripted

LARGE = "x" * 100_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


async def test_a_fork_goes_on_from_the_same_history(runtime: Runtime) -> None:
    """D10: both have what was said before, and neither sees what is said in the other afterwards."""
    async with runtime(lambda messages: f"You said {last_user_text(messages)}.") as outlast:
        session = await outlast.sessions.create(title="River", metadata={"a": 1})
        await session.ask("one")
        await session.ask("two")
        fork = await outlast.sessions.fork(session.id)
        assert (fork.title, fork.metadata, fork.agent) == ("River", {"a": 1}, session.agent)
        assert outline(await fork.history()) == outline(await session.history())
        await fork.ask("three")
        await session.ask("four")
        assert outline(await fork.history())[-2:] == ["user: three", "text: You said three."]
        assert outline(await session.history())[-2:] == ["user: four", "text: You said four."]
        (created,) = await events_of(fork, "session.created")
        assert created.data["forked_from"] == session.id


async def test_a_long_history_can_be_taken_along(runtime: Runtime) -> None:
    """D10: as many messages as may be brought are forked and imported too, on every store."""
    said = [ModelRequest(parts=[UserPromptPart("Hi.")]), ModelResponse(parts=[TextPart("Hello.")])]
    async with runtime() as outlast:
        session = await outlast.sessions.create(history=said * 2_500)
        fork = await outlast.sessions.fork(session.id)
        imported = await outlast.sessions.import_(await session.export())
        for each in (session, fork, imported):
            assert len(await each.history()) == 5_000


async def test_a_fork_may_begin_earlier(runtime: Runtime) -> None:
    """D10: at the position of any message; a call whose answer comes later is told as not known."""

    def add(a: int, b: int) -> int:
        return a + b

    model = scripted(call("add", a=1, b=2, call_id="c1"), "Three.", "Again.")
    async with runtime(model, tools=[add]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Add.")
        fork = await outlast.sessions.fork(session.id, at=2, title="Earlier")
        assert fork.title == "Earlier"
        assert outline(await fork.history()) == ["user: Add.", "call: add", "return: add (interrupted)"]
        await fork.ask("And now?")
        check_history(await fork.history())
        await check_providers(await fork.history())
        assert outline(await (await outlast.sessions.fork(session.id, at=0)).history()) == []
        with pytest.raises(InvalidInput):
            await outlast.sessions.fork(session.id, at=-1)
        with pytest.raises(NotFound):
            await outlast.owned_by("bob").fork(session.id)


async def test_a_fork_has_no_tasks(runtime: Runtime) -> None:
    """D10: a parked call stands in it as it was told; its end wakes only the session that it belongs to."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "3 m"

    model = scripted(call("survey", call_id="c1"), "It runs.", "It is 3 m.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        task = await parked(session)
        fork = await outlast.sessions.fork(session.id)
        assert await fork.tasks() == []
        content: Any = return_of("c1", await fork.history()).content
        assert content["task_id"] == task.id
        here.open()
        await session.settled()
        assert outline(await session.history())[-1] == "text: It is 3 m."
        assert outline(await fork.history())[-1] == "text: It runs."


async def test_a_fork_keeps_its_files_when_the_source_is_deleted(runtime: Runtime) -> None:
    """D10: large and binary values are its own."""
    said = [ModelRequest(parts=[UserPromptPart(content=[LARGE, BinaryContent(PNG, media_type="image/png")])])]
    async with runtime() as outlast:
        session = await outlast.sessions.create(history=said)
        fork = await outlast.sessions.fork(session.id, idempotency_key="k")
        assert (await outlast.sessions.fork(session.id, idempotency_key="k")).id == fork.id
        with pytest.raises(IdempotencyMismatch):
            await outlast.sessions.fork(session.id, at=1, idempotency_key="k")
        await outlast.sessions.delete(session.id)
        (message,) = await fork.history()
        content: Any = message.parts[0]
        assert content.content[0] == LARGE
        assert content.content[1].data == PNG


async def test_the_model_of_a_fork_reads_on_in_long_results(runtime: Runtime) -> None:
    """A9, D10: what it was shown in part is there as a whole, also when the source is deleted."""

    def survey() -> str:
        return "".join(f"{n:08}" for n in range(20_000))

    model = scripted(call("survey", call_id="c1"), "Long.", call("read_output", id="c1", offset=8, length=8), "Read.")
    async with runtime(model, tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Measure.")
        fork = await outlast.sessions.fork(session.id)
        await outlast.sessions.delete(session.id)
        outcome = await fork.ask("Read on.")
        assert outcome.text == "Read."
        assert outcome.calls[-1].result["text"] == "00000001"


async def test_an_exported_session_can_be_imported(runtime: Runtime) -> None:
    """D10: as JSON and back; the copy goes on like the original, for whoever imports it."""

    def add(a: int, b: int) -> str:
        return LARGE

    model = scripted(call("add", a=1, b=2, call_id="c1"), "Long.", "Again.")
    async with runtime(model, tools=[add]) as outlast:
        session = await outlast.sessions.create(title="River", metadata={"a": [1]})
        outcome = await session.ask("Add.")
        document = json.loads(json.dumps(await session.export()))
        assert document["format"] == "outlast.session/1"
        assert document["left_out"] == []
        (turn,) = document["turns"]
        assert (turn["id"], turn["state"], turn["usage"]["requests"]) == (outcome.turn_id, "completed", 2)
        bob = outlast.owned_by("bob")
        copy = await bob.import_(document, idempotency_key="k")
        assert (await bob.import_(document, idempotency_key="k")).id == copy.id
        assert (copy.title, copy.metadata, copy.owner_id) == ("River", {"a": [1]}, "bob")
        assert await copy.history() == [
            replace(each, model_id=None) if isinstance(each, ModelResponse) else each
            for each in await session.history()
        ]
        assert (await copy.ask("More.")).text == "Again."
        check_history(await copy.history())
        (created,) = await events_of(copy, "session.created")
        assert created.data["imported_from"] == session.id


async def test_an_export_names_what_it_leaves_out(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: what is too large is replaced by words, and the rest can still be imported."""
    monkeypatch.setattr(export, "_INLINED", 200_000)
    said = [
        ModelRequest(parts=[UserPromptPart(content=LARGE)]),
        ModelRequest(parts=[UserPromptPart(content=["look", BinaryContent(b"y" * 300_000, media_type="image/png")])]),
        ModelRequest(parts=[UserPromptPart(content=LARGE + LARGE)]),
    ]
    async with runtime() as outlast:
        session = await outlast.sessions.create(history=said)
        document = await session.export()
        assert [each["where"] for each in document["left_out"]] == ["messages[1]", "messages[2]"]
        first, second, third = await (await outlast.sessions.import_(document)).history()
        assert outline([first]) == [f"user: {LARGE}"]
        assert "300000 bytes was left out: image/png" in outline([second])[0]
        assert "the rest of 200000 bytes was left out" in outline([third])[0]


async def test_an_export_has_no_secrets(runtime: Runtime) -> None:
    """A11, G6: what was registered as a secret is masked wherever it stands."""

    def login() -> str:
        public.secret("hunter2-hunter2")
        return "ok"

    model = scripted(call("login"), "The key is hunter2-hunter2.")
    async with runtime(model, tools=[login]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Log in.")
        document = json.dumps(await session.export())
        assert "hunter2" not in document
        assert "***************" in document


def response_of(*call_ids: str) -> dict[str, Any]:
    return {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "t", "tool_call_id": call_ids[0]}]}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "not an object"),
        ({}, "format is None"),
        ({"format": "outlast.session/9"}, "only 'outlast.session/1'"),
        ({"format": export.FORMAT}, "no list of messages"),
        ({"format": export.FORMAT, "messages": [7]}, "messages[0] is not an object"),
        ({"format": export.FORMAT, "messages": [{"message": {"kind": "request"}}]}, "messages[0].message"),
        ({"format": export.FORMAT, "messages": [], "x": "\ud800"}, "The document is not JSON"),
        ({"format": export.FORMAT, "messages": [], "session": 7}, "session is not an object"),
        ({"format": export.FORMAT, "messages": [], "session": {"title": 7}}, "session.title is not text"),
        ({"format": export.FORMAT, "messages": [], "session": {"metadata": {"a": "\x00"}}}, "NUL"),
        (
            {
                "format": export.FORMAT,
                "messages": [
                    {"message": response_of("c1")},
                    {
                        "message": {
                            "kind": "request",
                            "parts": [
                                {"part_kind": "tool-return", "tool_name": "t", "content": 1, "tool_call_id": "c2"}
                            ],
                        }
                    },
                ],
            },
            "answers the call 'c2'",
        ),
    ],
)
async def test_a_bad_document_is_refused_with_what_is_wrong(runtime: Runtime, document: Any, says: str) -> None:
    """D10, G3: nothing is stored of it."""
    async with runtime() as outlast:
        with pytest.raises(InvalidInput) as refused:
            await outlast.sessions.import_(document)
        assert says in refused.value.message
        assert await outlast.sessions.list() == []


async def test_open_calls_of_a_document_are_told_truthfully(runtime: Runtime) -> None:
    """P2: what was open when it was exported is not run here, and not left open."""
    said = [
        ModelRequest(parts=[UserPromptPart(content="Go.")]),
        ModelResponse(parts=[ToolCallPart(tool_name="pay", args={}, tool_call_id="c1")]),
    ]
    async with runtime(scripted("Not sure.")) as outlast:
        document = {
            "format": export.FORMAT,
            "messages": [{"message": json.loads(history.message_type().dump_json(each))} for each in said],
        }
        session = await outlast.sessions.import_(document)
        assert (await session.ask("Did it?")).text == "Not sure."
        assert return_of("c1", await session.history()).outcome == "interrupted"
        check_history(await session.history())


class Beat:
    """Counts how often the loop came to something else."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


def many_messages(count: int, word: str) -> dict[str, Any]:
    part = {"part_kind": "user-prompt", "content": word, "timestamp": "2026-01-01T00:00:00Z"}
    said = [{"message": {"kind": "request", "parts": [part]}} for _ in range(count)]
    return {"format": export.FORMAT, "session": {}, "messages": said}


def noting(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, note: Callable[[Any], None]) -> None:
    real = getattr(place, name)

    def noted(first: Any, *more: Any) -> Any:
        note(first)
        return real(first, *more)

    monkeypatch.setattr(place, name, noted)


async def test_others_run_while_a_large_document_is_imported(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: between a few messages and the next ones; while they are checked, made harmless and made fit to be stored."""
    beat = Beat()
    seen: dict[str, set[int]] = {"_message": set(), "_harmless": set(), "masked": set()}
    for place, name in ((export, "_message"), (export, "_harmless"), (sessions, "masked")):
        noting(monkeypatch, place, name, lambda _, name=name: seen[name].add(beat.count))
    async with runtime() as outlast:
        beating = asyncio.create_task(beat.run())
        imported = await outlast.sessions.import_(many_messages(1_000, "x"))
        beating.cancel()
        await asyncio.wait({beating})
        assert len(await imported.history()) == 1_000
    assert {name: len(each) >= 10 for name, each in seen.items()} == dict.fromkeys(seen, True)


async def test_one_owner_imports_one_document_after_the_other(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3: another owner does not wait for that."""
    order: list[str] = []
    noting(monkeypatch, export, "_message", lambda message: order.append(message["parts"][0]["content"]))
    async with runtime() as outlast:
        one, other = outlast.owned_by("one"), outlast.owned_by("other")
        given = [(one, "a"), (one, "b"), (other, "c")]
        await asyncio.gather(*(owned.import_(many_messages(500, word)) for owned, word in given))
    assert [each for each in order if each != "c"] == ["a"] * 500 + ["b"] * 500
    assert order.index("c") < order.index("b")
