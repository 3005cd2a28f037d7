"""Connections: a tool asks for its owner's credential, and nobody else ever sees it (A17, G6)."""

import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from pydantic_ai import ApprovalRequired, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed

import outlast as public
from outlast import Outlast, OutlastError
from outlast.protocols.ai_sdk.messages import ui_messages
from outlast.runtime import LOCAL_OWNER
from outlast.store.tables import metadata
from outlast.testing import call, reasoning, reply, text, waiting
from tests.support.logs.spans import recorded
from tests.support.turns.runtime import Runtime, events_of, scripted

VALUE = 'ghp_live-"4711"-wörd'
KEYS = (Fernet.generate_key().decode(),)


def stars(value: str) -> str:
    return "*" * len(value)


async def stored(outlast: Outlast[Any, Any]) -> str:
    """All rows of all tables, as text."""

    def read(connection: sa.Connection) -> str:
        return repr([[*map(tuple, connection.execute(sa.select(each)))] for each in metadata.sorted_tables])

    return await outlast.database.read(read)


def leaks(*shown: Any) -> list[str]:
    whole = repr(shown).replace("\\", "")
    return [part for part in ('4711"-w', "ghp_live-", '"4711"') if part in whole]


def files_of(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())


async def test_a_tool_is_given_its_owners_value(runtime: Runtime) -> None:
    """A17: async and sync tools, each owner its own; the use is noted."""
    seen: list[tuple[str, str]] = []

    async def push() -> str:
        seen.append(("async", await public.connection("github")))
        return "pushed"

    def pull() -> str:
        assert threading.current_thread() is not threading.main_thread()
        seen.append(("sync", public.connection_sync("github")))
        return "pulled"

    model = scripted(call("push"), call("pull"), "Done.", call("push"), "Done.")
    async with runtime(model, tools=[push, pull], encryption_keys=KEYS) as outlast:
        await outlast.connections.set("github", VALUE)
        await outlast.connections_of("ben").set("github", "that of Ben")
        assert (await (await outlast.sessions.create()).ask("Go.")).text == "Done."
        assert (await (await outlast.owned_by("ben").create()).ask("Go.")).text == "Done."
        assert seen == [("async", VALUE), ("sync", VALUE), ("async", "that of Ben")]
        assert (await outlast.connections.get("github")).used_at is not None


async def test_its_value_is_found_nowhere(runtime: Runtime, capfd: pytest.CaptureFixture[str]) -> None:
    """A17, G6: a tool gives it, prints it, raises it, the model says it: store, log, events, messages, exports, the
    owner's feed, task output, the views of a page and traces are searched.
    """
    spans = recorded()

    async def give() -> Any:
        value = await public.connection("github")
        for piece in (value[:5], value[5:9], value[9:]):
            public.output(piece)
        public.progress(1, 2, label=f"with {value}")
        public.artifact(f"{value}.txt", b"nothing")
        return ToolReturn({"a": [value, {value: 1}]}, content=["see", value])

    def large() -> str:
        return public.connection_sync("github") * 6_000

    def refuse() -> str:
        raise ToolFailed(f"no {public.connection_sync('github')}")

    def again() -> str:
        raise ModelRetry(f"not {public.connection_sync('github')}")

    async def broken() -> str:
        raise RuntimeError(await public.connection("github"))

    async def pay(amount: int) -> str:
        raise ApprovalRequired(metadata={"with": await public.connection("github")})

    async def late() -> str:
        value = await public.connection("github")
        public.output(f"late {value}")
        await public.ask(f"Is it {value}?")
        raise RuntimeError(value)

    tools = [give, large, refuse, again, broken, pay, late]
    said = reply(reasoning(f"I know {VALUE}", chunk=4), text(f"I say {VALUE}.", chunk=3))
    steps = [call("pay", amount=7) if each is pay else call(each.__name__) for each in tools]
    model = scripted(*steps, said, *["I was told."] * 5)
    async with runtime(model, tools=tools, encryption_keys=KEYS) as outlast:
        kept = await outlast.connections.set("github", VALUE)
        session = await outlast.sessions.create()
        outcome = await (await session.send("Go.")).outcome()
        assert outcome.text == f"I say {stars(VALUE)}."
        asked = await waiting(outlast.tasks, "question")
        await outlast.tasks.reply(asked.id, "It is.")
        ended = await outlast.tasks.wait(asked.id, seconds=20)
        assert (ended.state, ended.attempt) == ("failed", 1)
        approval = await waiting(outlast.tasks, "approval")
        await outlast.tasks.refuse(approval.id, by=f"Ada {VALUE}", reason=f"It has {VALUE} in it.")
        await session.settled()
        await session.update(title=f"about {VALUE}", metadata={"key": VALUE})
        await session.ask(f"Is it {VALUE}?")
        shown: list[Any] = [
            await events_of(session),
            await session.messages(),
            await session.export(),
            await session.history(),
        ]
        turns = (await session.turns()).items
        shown += [ended, await outlast.tasks.output(ended.id), await ui_messages(session, turns), await session.view()]
        async with outlast.events_of(LOCAL_OWNER, sessions=[session.id], follow=False) as feed:
            shown.append([each async for each in feed])
        assert leaks([each.to_json() for each in spans.get_finished_spans()]) == []
        assert {"tool broken", "tool late"} <= {each.name for each in spans.get_finished_spans()}
        listed = await outlast.connections.list()
        assert leaks(*shown, outcome, kept, listed, session.title, session.metadata) == []
        assert leaks(await stored(outlast)) == []
        assert leaks([request.messages for request in model.requests]) == []
        logged = capfd.readouterr()
        assert "tool failed" in logged.out + logged.err
        assert leaks(logged) == []
    on_disk = files_of(runtime.folder)
    assert on_disk
    assert b"ghp_live-" not in on_disk
    assert b"4711" not in on_disk


async def test_where_there_is_none_the_call_fails_with_what_to_do(runtime: Runtime) -> None:
    """A17: not set, or of another owner: the model is told the provider and the command; the session goes on."""

    async def push() -> str:
        return await public.connection("github")

    def pull() -> str:
        return public.connection_sync("git.hub-2")

    async def odd() -> str:
        return await public.connection("Git/Hub")

    model = scripted(call("push"), call("pull"), call("odd"), "I cannot.")
    async with runtime(model, tools=[push, pull, odd], encryption_keys=KEYS) as outlast:
        await outlast.connections_of("ben").set("github", VALUE)
        session = await outlast.sessions.create()
        assert (await session.ask("Go.")).text == "I cannot."
        told = [str(request.messages[-1].parts[0].content) for request in model.requests[1:]]  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownArgumentType]
        assert "outlast connections set github" in told[0]
        assert "outlast connections set git.hub-2" in told[1]
        assert "reference" in told[2], "a misspelt name is a fault of the tool"


async def test_what_no_key_opens_and_no_key_at_all_are_told(runtime: Runtime) -> None:
    """A17: nothing waits for ever, and nothing is a fault."""

    async def push() -> str:
        return await public.connection("github")

    async with runtime(encryption_keys=KEYS) as outlast:
        await outlast.connections.set("github", VALUE)
    for keys, words in (((Fernet.generate_key().decode(),), "set github"), ((), "generate-encryption")):
        model = scripted(call("push"), "I cannot.")
        async with runtime(model, tools=[push], encryption_keys=keys) as outlast:
            assert (await (await outlast.sessions.create()).ask("Go.")).text == "I cannot."
            assert words in repr(model.requests[1].messages[-1])


async def test_outside_a_tool_there_are_none() -> None:
    with pytest.raises(OutlastError, match="outside"):
        await public.connection("github")
    with pytest.raises(OutlastError, match="outside"):
        public.connection_sync("github")


async def test_the_sync_form_is_refused_where_it_would_block_everything(runtime: Runtime) -> None:
    async def push() -> str:
        try:
            return public.connection_sync("github")
        except OutlastError as exc:
            return exc.message

    model = scripted(call("push"), "Done.")
    async with runtime(model, tools=[push], encryption_keys=KEYS) as outlast:
        await outlast.connections.set("github", VALUE)
        await (await outlast.sessions.create()).ask("Go.")
        assert "await outlast.connection(" in repr(model.requests[1].messages[-1])
