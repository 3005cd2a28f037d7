"""What a program holds works alike beside the runtime and over HTTP: one suite for the library and the client."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import Tool

import outlast as public
from outlast import Attachment, Binding, Context, OutlastError, Permissions, Verdict, hints
from outlast.errors import Conflict, InvalidInput, NotFound, SessionBusy
from outlast.testing import call, gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import client_of, serving
from tests.support.turns.held import OWNER, Hold, of_library
from tests.support.turns.runtime import Runtime, scripted


async def test_sessions_are_made_found_changed_listed_and_archived(hold: Hold) -> None:
    """D10: what was set is there for whoever looks again."""
    async with hold(scripted(), models={"small": scripted("Small.")}) as held:
        session = await held.sessions.create(
            title="Oslo",
            metadata={"team": "a", "when": None},
            model="small",
            budget=timedelta(seconds=2.5),
            external_id="trip",
            permissions=Permissions(deny=["pay"]),
            is_dry_run=True,
        )
        assert (session.title, session.agent, session.model, session.state) == ("Oslo", "agent", "small", "idle")
        assert (session.metadata, session.budget) == ({"team": "a", "when": None}, timedelta(seconds=2.5))
        assert (session.is_dry_run, session.permissions.deny, session.binding) == (True, ["pay"], None)
        assert (session.is_archived, session.is_unread, session.is_held, session.preview) == (False, False, False, None)
        assert (await held.sessions.create(external_id="trip")).id == session.id
        about = Binding(kind="invoice", id="4711")
        bound = await held.sessions.create(binding=about, budget=None, idempotency_key="once")
        assert (await held.sessions.create(binding=about, budget=None, idempotency_key="once")).id == bound.id
        assert (bound.binding, bound.budget) == (about, None)

        assert await session.update(title="Bergen", metadata={"team": "b"}, model=None, permissions=None) is session
        found = await held.sessions.get(session.id)
        assert (found.title, found.metadata, found.model, found.is_dry_run) == ("Bergen", {"team": "b"}, None, True)
        assert found.permissions.deny == []
        first = await held.sessions.page(limit=1)
        rest = await held.sessions.page(limit=1, before=first.next)
        assert [each.id for each in (*first.items, *rest.items)] == [session.id, bound.id]
        assert [each.id for each in await held.sessions.list(metadata={"team": "b"})] == [session.id]
        assert [each.id for each in await held.sessions.list(search="berg")] == [session.id]
        await session.update(is_archived=True)
        assert [each.id for each in await held.sessions.list()] == [bound.id]
        assert [each.id for each in await held.sessions.list(archived=True)] == [session.id]


async def test_a_question_is_asked_and_its_log_read(hold: Hold) -> None:
    """D1, D7, E1: the outcome, the history, and the events from any place, of some types or all."""
    async with hold(scripted("Hello Ada.", "Again.")) as held:
        session = await held.sessions.create()
        assert await session.result(wait=0) is None
        page, file = Context("a page", "https://example.org"), Attachment("a.txt", b"hi", "text/plain")
        outcome = await session.ask("hi", wait=20, context=page, files=[file])
        assert (outcome.state, outcome.text, outcome.is_over) == ("completed", "Hello Ada.", True)
        assert await session.result(wait=0) == await session.result(until="settled") == outcome
        assert [each.position for each in (await session.messages()).items] == [1, 2]
        assert (await session.messages(limit=1)).next == "1"
        async with session.events(follow=False) as stream:
            everything = [event async for event in stream]
        assert (everything[0].type, everything[-1].type) == ("session.created", "turn.completed")
        assert stream.position == everything[-1].number == (await session.refresh()).last_event
        ends = ["turn.completed", "input.accepted"]
        async with session.events(follow=False, types=ends) as stream:
            assert [event.type async for event in stream] == ["input.accepted", "turn.completed"]
        assert session.is_unread
        assert not (await session.update(read_to=session.last_event)).is_unread
        async with session.events(after=session.last_event, types=ends) as stream:
            await held.sessions.send(session.id, "more", idempotency_key="k")
            assert [(await anext(stream)).type, (await anext(stream)).type] == ["input.accepted", "turn.completed"]


async def test_a_sent_message_tells_what_becomes_of_it(hold: Hold) -> None:
    """D1, D2, E1: its events from itself on, and the same for whoever sends it once more."""
    async with hold(scripted("Before.", "Hello.")) as held:
        session = await held.sessions.create()
        await session.ask("before")
        sent = await session.send("hi", idempotency_key="k")
        async with await sent.events() as stream:
            types = [(await anext(stream)).type]
            while types[-1] != "turn.completed":
                types.append((await anext(stream)).type)
        assert types[0] == "input.accepted"
        assert types.count("turn.completed") == 1
        assert (await sent.outcome()).text == "Hello."
        again = await session.send("hi", idempotency_key="k")
        assert (again.is_repeat, again.input_id, again.place) == (True, sent.input_id, None)
        async with await again.events() as stream:
            told = [event async for event in stream]
        assert {event.turn_id for event in told if event.type.startswith("turn.")} == {sent.turn_id}
        assert told[-1].type == "turn.completed"
        assert (await again.outcome()).text == "Hello."
        assert (await again.turn()).id == sent.turn_id


async def test_a_busy_session_is_steered_and_keeps_what_waits(hold: Hold) -> None:
    """D2: into the running turn, or into the next one; what waits can be changed and taken back."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "blue"

    async with hold(scripted(call("look"), "Blue, quickly.", "Two."), tools=[look]) as held:
        session = await held.sessions.create()
        first = await session.send("look")
        await here.reached()
        steering = await session.send("quickly")
        queued = await session.send("second", when_busy="queue")
        assert (queued.turn_id, queued.place) == (None, 2)
        with pytest.raises(SessionBusy):
            await session.send("no", when_busy="reject")
        assert (await queued.outcome(wait=0)).state == "queued"
        assert [each.id for each in await session.inbox()] == [steering.input_id, queued.input_id]
        await session.edit_input(queued.input_id, "second, but better")
        gone = await session.send("third", when_busy="queue")
        await session.remove_input(gone.input_id)
        with pytest.raises(Conflict):
            await gone.turn()
        here.open()
        assert (await first.outcome(wait=20)).text == "Blue, quickly."
        assert (await steering.turn()).id == first.turn_id
        assert (await queued.outcome(wait=20)).text == "Two."
        assert (await session.input(queued.input_id)).text == "second, but better"


async def test_a_turn_is_stopped_resumed_retried_and_made_again(hold: Hold) -> None:
    """D5, D6, P6"""
    here, there = Checkpoint(), Checkpoint()
    model = scripted([text("Once"), gate(here)], "Resumed.", [text("Twice"), gate(there)], "Retried.")
    async with hold(model, models={"small": scripted("Small.")}) as held:
        session = await held.sessions.create()
        await session.send("go")
        await here.reached()
        queued = await session.send("next", when_busy="queue")
        stopped = await session.stop()
        assert stopped is not None
        assert (stopped.state, stopped.text) == ("stopped", "Once")
        assert ((await session.refresh()).state, session.is_held) == ("held", True)
        resumed = await session.resume()
        assert resumed is not None
        assert (await resumed.outcome(wait=20)).text == (await queued.outcome()).text == "Resumed."
        assert await session.resume() is None

        sent = await session.send("once more")
        await there.reached()
        await session.stop()
        assert (await sent.outcome()).state == "stopped"
        assert (await (await session.retry()).outcome(wait=20)).text == "Retried."
        with pytest.raises(Conflict):
            await session.retry()
        assert (await (await session.regenerate(model="small")).outcome(wait=20)).text == "Small."
        assert await session.stop() is None


async def test_tasks_are_listed_followed_waited_for_and_cancelled(hold: Hold) -> None:
    """B1, B4, B6"""
    here, there = Checkpoint(), Checkpoint()
    places = iter((here, there))

    async def survey() -> str:
        public.output("measuring\n")
        await next(places)()
        return "12 metres"

    steps = scripted(call("survey"), "It is running.", "12 metres.", call("survey"), "Again.", "It was canceled.")
    async with hold(steps, tools=[Tool(survey, metadata=hints(budget=0.01))]) as held:
        session = await held.sessions.create()
        sent = await session.send("survey")
        assert (await sent.outcome(wait=20)).text == "It is running."
        (task,) = await held.tasks.list(state="open")
        assert (task.session_id, task.tool, task.kind) == (session.id, "survey", "call")
        assert (await held.tasks.wait(task.id, seconds=0)).state == "running"
        assert not await session.is_settled()
        async with held.tasks.follow(task.id) as pieces:
            assert (await anext(pieces)).text == "measuring\n"
            here.open()
            assert [piece async for piece in pieces] == []
        assert pieces.ended is not None
        assert (pieces.ended.state, pieces.ended.result, pieces.offset) == ("succeeded", "12 metres", 10)
        assert (await sent.outcome(wait=20, settle=True)).text == "12 metres."
        assert await session.is_settled()
        assert (await held.tasks.output(task.id, offset=2, length=3)).text == "asu"

        await (await session.send("again")).outcome(wait=20)
        (other,) = await held.tasks.list(session_id=session.id, state="open")
        assert (await held.tasks.cancel(other.id)).state == "canceled"
        settled = await session.settled(wait=20)
        assert settled is not None
        assert settled.text == "It was canceled."
        assert await held.tasks.list(state="open") == []
        first = await held.tasks.page(limit=1)
        assert [each.id for each in (*first.items, *await held.tasks.list(before=first.next))] == [other.id, task.id]
        assert [each.id for each in await session.tasks()] == [other.id, task.id]


async def test_a_person_says_what_became_of_calls_and_tasks(hold: Hold) -> None:
    """A2: once; `by` may be left out."""
    here, released = Checkpoint(), asyncio.Event()

    async def charge() -> None:
        await here()

    async def dig() -> str:
        try:
            await released.wait()
        except asyncio.CancelledError:
            await released.wait()  # ignores the first cancel: nobody knows what it has done
        return "a hole"

    steps = scripted(call("charge", call_id="c1"), "I see.", call("dig"), "It goes on.", "Abandoned.", "Good to know.")
    tools = [charge, Tool(dig, metadata=hints(budget=0.01))]
    async with hold(steps, tools=tools) as held:
        session = await held.sessions.create()
        await session.send("charge")
        await here.reached()
        await session.stop()
        (unknown,) = (await session.refresh()).interrupted_calls
        assert (unknown.call_id, unknown.tool) == ("c1", "charge")
        told = await session.settle_call("c1", "worked", note="I looked.")
        assert told.kind == "settlement"
        assert (await session.refresh()).interrupted_calls == []
        with pytest.raises(Conflict):
            await session.settle_call("c1", Verdict.FAILED)
        await session.settled(wait=20)

        await (await session.send("dig")).outcome(wait=20)
        (task,) = await held.tasks.list(state="open")
        assert (await held.tasks.cancel(task.id)).state == "failed"
        await session.settled(wait=20)
        with pytest.raises(InvalidInput):
            await held.tasks.settle(task.id, "perhaps")
        settled = await held.tasks.settle(task.id, Verdict.WORKED)
        assert (settled.state, settled.shown_state) == ("failed", "settled: worked")
        assert [each.id for each in await held.tasks.list(state="settled")] == [task.id]
        with pytest.raises(Conflict):
            await held.tasks.settle(task.id, "failed")
        await session.settled(wait=20)
        released.set()


async def test_sessions_are_forked_exported_imported_and_deleted(hold: Hold) -> None:
    """D8, D10, P7"""
    async with hold(scripted("One.", "Two.", "Three.", "Four.")) as held:
        session = await held.sessions.create(title="Oslo", budget=timedelta(seconds=3))
        await session.ask("first")
        await session.ask("second")
        fork = await held.sessions.fork(session.id, at=2, title="Fork", idempotency_key="f")
        assert (await held.sessions.fork(session.id, at=2, title="Fork", idempotency_key="f")).id == fork.id
        assert (fork.title, fork.budget, len((await fork.messages()).items)) == ("Fork", timedelta(seconds=3), 2)
        assert (await fork.ask("third")).text == "Three."
        document = await session.export()
        copy = await held.sessions.import_(document)
        assert (copy.title, len((await copy.messages()).items)) == ("Oslo", 4)
        with pytest.raises(InvalidInput):
            await held.sessions.import_({"format": "something else"})

        async with session.events(types=["session.created"]) as stream:
            assert (await anext(stream)).type == "session.created"
            await held.sessions.delete(session.id)
            assert [event.type async for event in stream] == ["session.deleted"]
        for nothing in (held.sessions.get(session.id), session.refresh(), session.send("x"), session.export()):
            with pytest.raises(NotFound):
                await nothing
        assert {each.id for each in await held.sessions.list()} == {fork.id, copy.id}


async def test_connections_and_keys_are_kept(hold: Hold) -> None:
    """A17, G1"""
    async with hold(encryption_keys=(Fernet.generate_key().decode(),)) as held:
        made = await held.connections.set("github", "ghp_4711-word")
        assert (made.provider, made.state, made.used_at) == ("github", "ready", None)
        assert (await held.connections.get("github")).created_at == made.created_at
        assert [each.provider for each in await held.connections.list()] == ["github"]
        await held.connections.remove("github")
        with pytest.raises(NotFound):
            await held.connections.remove("github")

        key, secret = await held.keys.make("bob", "laptop", scope="read", expires_in=timedelta(days=2))
        assert secret.startswith("olk_")
        assert (key.owner_id, key.name, key.role, key.scope) == ("bob", "laptop", "user", "read")
        assert key.expires_at == key.created_at + timedelta(days=2)
        other, _ = await held.keys.make("bob", "phone")
        page = await held.keys.page("bob", limit=1)
        assert [each.id for each in (*page.items, *await held.keys.list("bob", before=page.next))] == [other.id, key.id]
        revoked = await held.keys.revoke(key.id)
        assert revoked.revoked_at is not None
        assert [each.revoked_at for each in await held.keys.list("bob")] == [None, revoked.revoked_at]


async def test_refusals_have_the_same_class_and_code(hold: Hold) -> None:
    """G3, P7: whoever handles an error handles it on both sides."""
    async with hold(models={"small": scripted()}) as held:
        session = await held.sessions.create()
        asked = {
            "unknown session": held.sessions.get("ses_unknown"),
            "unknown task": held.tasks.get("tsk_unknown"),
            "unknown turn": session.turn("trn_unknown").outcome(),
            "unknown input": session.input("inp_unknown"),
            "unknown key": held.keys.revoke("key_unknown"),
            "unknown connection": held.connections.get("github"),
            "unknown agent": held.sessions.create(agent="nobody"),
            "unknown model": session.send("x", model="large"),
            "no text": session.send(""),
            "no title": session.update(title=""),
            "nothing to retry": session.retry(),
            "nothing to answer anew": session.regenerate(),
            "nothing to settle": session.settle_call("c1", "worked"),
            "no key": held.connections.set("github", "ghp_4711-word"),
            "nobody's key": held.keys.make("", "laptop"),
            "two names": held.sessions.create(external_id="a", binding=Binding(kind="b", id="c")),
        }
        found = {name: await refused(each) for name, each in asked.items()}
    assert found == {
        **dict.fromkeys([name for name in asked if name.startswith("unknown")], ("NotFound", "not_found")),
        "unknown agent": ("InvalidInput", "invalid_input"),
        "unknown model": ("InvalidInput", "invalid_input"),
        "no text": ("InvalidInput", "invalid_input"),
        "no title": ("InvalidInput", "invalid_input"),
        "nothing to retry": ("Conflict", "conflict"),
        "nothing to answer anew": ("Conflict", "conflict"),
        "nothing to settle": ("NotFound", "not_found"),
        "no key": ("NoEncryptionKey", "no_encryption_key"),
        "nobody's key": ("InvalidInput", "invalid_input"),
        "two names": ("InvalidInput", "invalid_input"),
    }


async def refused(asked: Any) -> tuple[str, str]:
    with pytest.raises(OutlastError) as caught:
        await asked
    return type(caught.value).__name__, caught.value.code


async def test_handles_have_the_same_attributes(embedded: Runtime) -> None:
    """What a class does not say is seen on the things themselves; what stays apart has a reason."""
    async with serving(embedded()) as server, client_of(server, OWNER) as client:
        library = of_library(server.outlast)
        ours, theirs = await library.sessions.create(), await client.sessions.create()
        sent, theirs_sent = await ours.send("hi"), await theirs.send("hi")
        turn, theirs_turn = await sent.turn(), await theirs_sent.turn()
        assert names(ours) ^ names(theirs) == {
            "owner_id",  # a client is the owner of all it sees
            "seen",  # the answer as it came, for whoever prints it
            *(
                "history",
                "snapshot",
                "turns",
                "first_turn",
                "turn_after",
                "view_json",
                "block_json",
            ),  # see test_signatures
        }
        assert names(sent) ^ names(theirs_sent) == {"input"}  # as it is stored; over HTTP: `session.input(input_id)`
        assert names(turn) ^ names(theirs_turn) == {"fold", "lead", "begins_after"}  # see test_signatures
        await asyncio.gather(ours.settled(), theirs.settled())


def names(thing: object) -> set[str]:
    return {each for each in dir(thing) if not each.startswith("_")}
