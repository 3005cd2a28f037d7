"""Registered secrets: masked before they are stored, wherever something is shown, and for the model (A11, G6)."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from cryptography.fernet import Fernet
from pydantic_ai import Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed

import outlast as public
from outlast.store.tables import metadata
from outlast.testing import call, reasoning, reply, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session
from tests.support.turns.runtime import Runtime, events_of, scripted

VALUE = 'sk-live-"4711"-wörd'
PIECES = [VALUE[:5], VALUE[5:9], VALUE[9:]]


async def stored(outlast: Any) -> str:
    """All rows of all tables, as text."""

    def read(connection: sa.Connection) -> str:
        return repr([[*map(tuple, connection.execute(sa.select(each)))] for each in metadata.sorted_tables])

    return await outlast.database.read(read)


def files_of(folder: Path) -> str:
    return repr([each.read_bytes() for each in folder.rglob("*") if each.is_file() and "outlast.db" not in each.name])


def leaks(*shown: Any) -> list[str]:
    """Long enough pieces of the value in what was shown."""
    whole = repr(shown).replace("\\", "")
    return [part for part in ('4711"-w', "sk-live-", '"4711"') if part in whole]


async def test_a_value_is_nowhere_after_it_was_registered(runtime: Runtime) -> None:
    """Results, errors, output in pieces, progress, files' names, the model's own words in pieces, and its reasoning."""

    async def register() -> str:
        public.secret(VALUE)
        for piece in PIECES:
            public.output(piece)
        public.progress(1, 2, label=f"with {VALUE}")
        public.artifact(f"{VALUE}.txt", b"nothing")
        return f"it is {VALUE}"

    def nested() -> Any:
        return ToolReturn({"a": [VALUE, {VALUE: 1}]}, content=["see", VALUE])

    def large() -> str:
        return VALUE * 6_000

    def refuse() -> str:
        raise ToolFailed(f"no {VALUE}")

    def again() -> str:
        raise ModelRetry(f"not {VALUE}")

    def broken() -> str:
        raise RuntimeError(VALUE)

    tools = [register, nested, large, refuse, again, broken]
    steps = [call(each.__name__) for each in tools]
    said = reply(reasoning(f"I know {VALUE}", chunk=4), text(f"I say {VALUE}.", chunk=3))
    model = scripted(*steps, said, "Bye.")
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        await session.update(title=f"about {VALUE}", metadata={"key": VALUE})
        await session.ask(f"Is it {VALUE}?", context=public.Context(VALUE), files=[public.Attachment(VALUE, b"x")])
        page = await session.messages()
        shown = [await events_of(session), page, await session.export(), await session.history(), outcome]
        assert outcome.text == f"I say {'*' * len(VALUE)}."
        assert leaks(*shown, session.title, session.metadata) == []
        assert leaks(await stored(outlast)) == []
        assert leaks([request.messages for request in model.requests[1:]]) == []
    assert leaks(files_of(runtime.folder)) == []


async def test_a_parked_call_tells_nothing_either(runtime: Runtime) -> None:
    """Its output while it runs, its result, its wake, and what the model reads of it."""
    here = Checkpoint()

    async def survey() -> str:
        public.secret(VALUE)
        public.output(f"first {VALUE[:8]}")
        await here()
        public.output(f"{VALUE[8:]} last")
        return VALUE

    steps = [call("survey", call_id="c1"), "It goes on.", call("read_output", {"id": "c1", "what": "output"}), "Done."]
    model = scripted(*steps)
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        pieces = outlast.tasks.follow(task.id)
        first = await anext(pieces)
        await pieces.aclose()
        here.open()
        assert first.text == "first ", "of a stream only what may begin a value is held back"
        await session.settled()
        piece = await outlast.tasks.output(task.id)
        assert piece.text == f"first {'*' * len(VALUE)} last"
        assert leaks(await events_of(session), await session.tasks(), await stored(outlast)) == []
        assert leaks([request.messages for request in model.requests]) == []


async def test_what_was_said_before_is_masked_where_it_is_shown(runtime: Runtime) -> None:
    """A value may be registered after somebody said it: the model is not sent it again, and nobody is shown it."""

    def login(password: str) -> str:
        public.secret(password)
        return "welcome"

    model = scripted(call("login", {"password": VALUE}), "You are in.", "Hello.")
    async with runtime(model, tools=[login]) as outlast:
        session = await outlast.sessions.create(title=VALUE)
        sent = await session.send(f"My password is {VALUE}.")
        outcome = await sent.outcome()
        await session.ask("Hi.")
        shown = [await events_of(session), await session.messages(), await session.export(), await session.history()]
        seen = await session.input(sent.input.id)
        assert leaks(*shown, outcome, seen, (await session.refresh()).title) == []
        assert leaks(model.requests[1].messages, model.requests[2].messages) == []
        assert model.requests[0].messages, "which it was sent before anybody knew"


async def test_a_call_whose_arguments_were_masked_is_not_run_again(runtime: Runtime) -> None:
    """Stars are not what the model asked for: the truth is that nobody knows what became of it."""
    here, given = Checkpoint(), list[str]()

    async def use(key: str) -> str:
        given.append(key)
        await here()
        return "used"

    tool = Tool(use, metadata=public.hints(idempotent=True))
    async with runtime(scripted(call("use", {"key": VALUE}, call_id="c1")), tools=[tool], drain=0.1) as outlast:
        outlast.secrets.add(VALUE)
        session = await outlast.sessions.create()
        await session.send("Go.")
        await here.reached()
        session_id = session.id
    here.open()
    async with runtime(scripted("I will look."), tools=[tool]) as outlast:
        session = await outlast.sessions.get(session_id)
        await session.settled()
        history = await session.history()
    assert given == [VALUE]
    assert "may or may not" in repr(history)


async def test_with_a_key_a_value_is_known_after_a_restart(runtime: Runtime) -> None:
    """A11: what is stored then is masked, though nobody registers it again."""

    def register() -> str:
        public.secret(VALUE)
        return "registered"

    def show() -> str:
        return VALUE

    options: dict[str, Any] = {"tools": [register, show], "encryption_keys": (Fernet.generate_key().decode(),)}
    async with runtime(scripted(call("register"), "Done."), **options) as outlast:
        await (await outlast.sessions.create()).ask("Go.")
    async with runtime(scripted(call("show"), f"It is {VALUE}."), **options) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        assert leaks(outcome, await events_of(session), await session.export(), await stored(outlast)) == []


async def test_a_value_that_no_store_takes_as_it_is_tells_nothing_either(runtime: Runtime) -> None:
    """A NUL and half a character are replaced before anything is stored: what is left of the value is masked."""
    value = "hunter2\x00hunter2\ud83d"

    def survey() -> str:
        public.secret(value)
        public.output(value)
        public.progress(1, label=value)
        return f"it is {value}"

    model = scripted(call("survey"), value, "Bye.")
    async with runtime(model, tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        await session.ask("Again.")
        shown = [await events_of(session), await session.messages(), await session.export(), await session.history()]
        assert "hunter" not in repr([shown, await stored(outlast)])
        assert "hunter" not in repr([request.messages for request in model.requests])
