"""Webhooks on both engines: rows of the same commit, signed messages, retries, a log, and nobody else delayed."""

import asyncio
import json
import socket
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import Tool
from standardwebhooks import Webhook as Signature

from outlast import Outlast, hints
from outlast.errors import Conflict, InvalidInput, NoEncryptionKey, NotFound, TooManyRequests
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId, WebhookId
from outlast.limits import Limits
from outlast.store.repositories.deliveries import Delivery
from outlast.store.unit import Unit
from outlast.testing import call
from outlast.transitions import webhooks as moves
from tests.support.network.receiver import NO_CONTENT, answering, receiving
from tests.support.turns.runtime import Runtime, scripted, wake

KEYS = (Fernet.generate_key().decode(),)
LOOPBACK = ("127.0.0.0/8",)
HERE: dict[str, Any] = {"encryption_keys": KEYS, "allowed_networks": LOOPBACK}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and retries as often as a test has patience for."""
    monkeypatch.setattr("outlast.duties.standing.EVERY_SECOND", timedelta(milliseconds=10))
    monkeypatch.setattr("outlast.transitions.webhooks._WAITS", [timedelta(milliseconds=20)])


async def until(outlast: Outlast[Any, Any], hook: str, holds: Callable[[list[Delivery]], bool]) -> list[Delivery]:
    async with asyncio.timeout(20):
        while True:
            found = list((await outlast.webhooks.deliveries(hook)).items)
            if holds(found):
                return found
            await asyncio.sleep(0.01)


def are(*states: str) -> Callable[[list[Delivery]], bool]:
    return lambda found: [each.state for each in found] == list(states)


async def ask(outlast: Outlast[Any, Any], text: str = "Hello") -> str:
    session = await outlast.sessions.create()
    await session.ask(text)
    return session.id


async def test_an_end_is_told_signed_and_without_content(runtime: Runtime) -> None:
    """B11: ids, states and times; the signature is that of Standard Webhooks."""
    async with receiving() as receiver, runtime(scripted("The secret is 42."), **HERE) as outlast:
        hook, secret = await outlast.webhooks.make(receiver.url)
        session_id = await ask(outlast, "Tell me all.")
        (message,) = await receiver.has(1)
        told = Signature(secret).verify(message.body, message.headers)
        assert told["type"] == "turn.completed"
        assert told["data"]["session_id"] == session_id
        assert told["data"]["turn_id"].startswith("trn_")
        assert told["data"]["state"] == "completed"
        assert b"secret" not in message.body
        assert b"cost" not in message.body
        (delivery,) = await until(outlast, hook.id, are("delivered"))
        assert delivery.id == message.headers["webhook-id"]
        assert (delivery.status, delivery.attempts, delivery.log[0]["status"]) == (204, 1, 204)


async def test_tasks_needs_and_ends_are_told(runtime: Runtime) -> None:
    """B7, B11: that a task needs somebody, and that it has ended."""

    async def pay(amount: int) -> str:
        return f"paid {amount}"

    tools = [Tool(pay, metadata=hints(approve=True))]
    model = scripted(call("pay", amount=5), "I wait.", "It is paid.")
    async with receiving() as receiver, runtime(model, tools=tools, **HERE) as outlast:
        await outlast.webhooks.make(receiver.url, types=["request.opened", "task.ended"])
        await (await outlast.sessions.create()).send("Pay.")
        (needed,) = await receiver.has(1)
        assert needed.json["type"] == "request.opened"
        assert {name: needed.json["data"][name] for name in ("kind", "state")} == {
            "kind": "approval",
            "state": "awaiting_input",
        }
        await outlast.tasks.approve(needed.json["data"]["task_id"], by="Ada")
        ended = (await receiver.has(2))[1]
        assert (ended.json["type"], ended.json["data"]["state"]) == ("task.ended", "succeeded")
        assert b"paid" not in ended.body


async def test_a_flagged_session_is_told(runtime: Runtime) -> None:
    """B11, P3: that it waits for a person, with its id and nothing that was said."""
    async with receiving() as receiver, runtime(lambda _: "Yes.", **HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url, types=["session.flagged"])
        session = await outlast.sessions.create()
        for text in ("First.", "Second."):
            await wake(outlast, session, text, limits=Limits(max_woken=1))
            await session.settled()
        (heard,) = await receiver.has(1)
        told = json.loads(heard.body)
        assert (told["type"], told["data"]) == ("session.flagged", {"session_id": session.id, "state": "flagged"})
        await until(outlast, hook.id, are("delivered"))


async def test_what_fails_is_tried_again_under_the_same_id(runtime: Runtime) -> None:
    """B11: errors, redirects that are not followed, and then an answer."""
    says = [answering(500), answering(302, "Location: http://127.0.0.1:9/\r\n"), NO_CONTENT]
    async with receiving(lambda n: says[n]) as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url)
        await ask(outlast)
        heard = await receiver.has(3)
        (delivery,) = await until(outlast, hook.id, are("delivered"))
        assert {each.headers["webhook-id"] for each in heard} == {delivery.id}
        assert [each["status"] for each in delivery.log] == [500, 302, 204]
        assert "not followed" in delivery.log[1]["error"]
        assert (await outlast.webhooks.get(hook.id)).failing_since is None


async def test_one_that_hangs_holds_up_no_other(runtime: Runtime) -> None:
    """B11, P8: not its neighbour's messages, not the turns."""
    async with receiving(lambda _: None) as mute, receiving() as receiver, runtime(**HERE) as outlast:
        await outlast.webhooks.make(mute.url)
        await outlast.webhooks.make(receiver.url)
        for _ in range(8):
            await ask(outlast)
        await receiver.has(8)
        assert len(mute.heard) <= 4


async def test_one_that_answers_slowly_fails_in_time_and_is_tried_again(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B11, P8: it may drip for ever; the time is for all of the answer, and the log says so."""
    monkeypatch.setattr("outlast.duties.webhooks._SECONDS", 0.3)
    drip = b"HTTP/1.1 204 No Content\r\nX-Slow: "
    async with receiving(lambda _: drip, slowly=True) as slow, receiving() as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(slow.url)
        await outlast.webhooks.make(receiver.url)
        await ask(outlast)
        await receiver.has(1)
        found = await until(outlast, hook.id, lambda found: len(found[0].log) >= 2 if found else False)
        assert (found[0].state, found[0].log[0]["status"]) == ("pending", None)
        assert "No answer within 0.3 seconds" in found[0].log[0]["error"]
        assert {each.headers["webhook-id"] for each in slow.heard} == {found[0].id}


async def test_a_name_that_moves_to_a_private_address_is_told_nothing_more(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G5, B11: it is judged at each try, and what was judged is what is connected to."""
    places = iter(["127.0.0.1"])
    look_up = socket.getaddrinfo

    def moving(host: str, port: int, *given: Any, **named: Any) -> list[Any]:
        if host != "moving.example":
            return look_up(host, port, *given, **named)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(places, "10.0.0.1"), port))]

    async with receiving(lambda _: answering(500)) as receiver, runtime(**HERE) as outlast:
        monkeypatch.setattr(socket, "getaddrinfo", moving)
        hook, _ = await outlast.webhooks.make(receiver.url.replace("127.0.0.1", "moving.example"))
        await ask(outlast)
        found = await until(outlast, hook.id, lambda found: len(found[0].log) >= 3 if found else False)
        assert found[0].log[0]["status"] == 500
        assert all("10.0.0.1, which is not a public address" in each["error"] for each in found[0].log[1:])
        assert len(receiver.heard) == 1


async def test_any_number_that_hang_hold_up_no_other(runtime: Runtime) -> None:
    """B11, P8: also when one owner has as many of them as there may be, and all have messages."""
    async with receiving(lambda _: None) as mute, receiving() as receiver, runtime(**HERE) as outlast:
        ben, ada = outlast.webhooks_of("ben"), outlast.webhooks_of("ada")
        for _ in range(moves.MOST_PER_OWNER):
            await ben.make(mute.url)
        await ada.make(receiver.url)
        session = await outlast.owned_by("ben").create()
        for _ in range(4):
            await session.ask("Hello")
        await mute.has(8)
        await (await outlast.owned_by("ada").create()).ask("Hello")
        async with asyncio.timeout(5):
            await receiver.has(1)


async def test_those_that_fail_leave_places_to_those_that_answer(runtime: Runtime) -> None:
    """B11, P8: of however many owners they are: each is tried with one message at a time, few of them at once."""
    async with receiving(lambda _: None) as mute, receiving() as receiver, runtime(**HERE) as outlast:
        await outlast.webhooks_of("ada").make(receiver.url)
        owners = [f"ben{number}" for number in range(6)]
        for each in owners:
            for _ in range(8):
                await outlast.webhooks_of(each).make(mute.url)
        await outlast.database.transaction(_fail_all_of(owners), name="fail")
        for each in owners:
            await (await outlast.owned_by(each).create()).ask("Hello")
        await mute.has(8)
        await (await outlast.owned_by("ada").create()).ask("Hello")
        async with asyncio.timeout(5):
            await receiver.has(1)
        assert len(mute.heard) == 8


def _fail_all_of(owners: list[str]) -> Callable[[Unit], None]:
    def fail(unit: Unit) -> None:
        for owner in owners:
            for each in moves.webhooks.of_owner(unit.connection, owner):
                moves.webhooks.mark(unit, each.id, failing_since=unit.now_us)

    return fail


async def test_it_ends_after_its_time_and_can_be_sent_again(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """B11: tried for a day, then failed; by hand again, under the same id."""
    monkeypatch.setattr("outlast.store.told_outside.RETRIED_FOR", timedelta(milliseconds=1))
    says = [answering(503), NO_CONTENT]
    async with receiving(lambda n: says[n]) as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url)
        await ask(outlast)
        (failed,) = await until(outlast, hook.id, are("failed"))
        assert failed.error == "It answered 503."
        await outlast.webhooks.redeliver(hook.id, failed.id)
        first, second = await receiver.has(2)
        assert first.headers["webhook-id"] == second.headers["webhook-id"] == failed.id
        await until(outlast, hook.id, are("delivered"))
        with pytest.raises(NotFound):
            await outlast.webhooks.redeliver(hook.id, "msg_nothing_1")


async def test_one_that_fails_for_days_is_switched_off_and_told(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B11: it is told nothing until somebody switches it on."""
    monkeypatch.setattr("outlast.transitions.webhooks.OFF_AFTER", timedelta(milliseconds=50))
    async with receiving(lambda n: answering(500) if n < 20 else NO_CONTENT) as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url)
        await ask(outlast)
        async with asyncio.timeout(20):
            while (await outlast.webhooks.get(hook.id)).state == "active":  # noqa: ASYNC110 - in the database
                await asyncio.sleep(0.01)
        off = await outlast.webhooks.get(hook.id)
        assert off.off_reason is not None
        assert "It answered 500." in off.off_reason
        await ask(outlast)
        assert len((await outlast.webhooks.deliveries(hook.id)).items) == 1
        with pytest.raises(Conflict, match="off"):
            await outlast.webhooks.test(hook.id)
        monkeypatch.setattr("outlast.transitions.webhooks.OFF_AFTER", timedelta(days=5))
        on = await outlast.webhooks.update(hook.id, is_active=True)
        assert (on.state, on.off_reason, on.failing_since) == ("active", None, None)
        await ask(outlast)
        await until(outlast, hook.id, are("delivered", "delivered"))


async def test_one_that_is_gone_is_switched_off_at_once(runtime: Runtime) -> None:
    """B11"""
    async with receiving(lambda _: answering(410)) as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url)
        await ask(outlast)
        async with asyncio.timeout(20):
            while (await outlast.webhooks.get(hook.id)).off_reason != "it answered 410 Gone":  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_two_secrets_sign_while_one_takes_over(runtime: Runtime) -> None:
    """B11: after a rotation, receivers with either secret verify."""
    async with receiving() as receiver, runtime(**HERE) as outlast:
        hook, old = await outlast.webhooks.make(receiver.url)
        _, new = await outlast.webhooks.rotate(hook.id)
        await outlast.webhooks.test(hook.id)
        (message,) = await receiver.has(1)
        for each in (old, new):
            assert Signature(each).verify(message.body, message.headers)["type"] == "webhook.test"


async def test_secrets_move_to_a_new_key(runtime: Runtime) -> None:
    """A17, B11: with rekey, as connections do; without a key that opens it, the log says so."""
    key = Fernet.generate_key().decode()
    async with receiving() as receiver:
        async with runtime(**HERE) as outlast:
            hook, secret = await outlast.webhooks.make(receiver.url)
        async with runtime(encryption_keys=(key, *KEYS), allowed_networks=LOOPBACK) as outlast:
            assert await outlast.rekey_connections() == (1, 0)
        async with runtime(encryption_keys=(key,), allowed_networks=LOOPBACK) as outlast:
            await outlast.webhooks.test(hook.id)
            (message,) = await receiver.has(1)
            Signature(secret).verify(message.body, message.headers)
        async with runtime(**HERE) as outlast:
            await outlast.webhooks.test(hook.id)
            found = await until(outlast, hook.id, lambda found: found[0].error is not None)
            assert "rotate" in (found[0].error or "")


async def test_a_private_address_is_told_nothing(runtime: Runtime) -> None:
    """G5, B11: refused when it is plain from the address, else at the first try; the log says why."""
    async with receiving() as receiver, runtime(encryption_keys=KEYS) as outlast:
        for url in (receiver.url, "http://[::1]/", "http://169.254.169.254/latest", "ftp://example.org/", "http:///x"):
            with pytest.raises(InvalidInput):
                await outlast.webhooks.make(url)
        with pytest.raises(InvalidInput, match="user"):
            await outlast.webhooks.make("https://ada:pass@example.org/")
        hook, _ = await outlast.webhooks.make(receiver.url.replace("127.0.0.1", "localhost"))
        await ask(outlast)
        found = await until(outlast, hook.id, lambda found: bool(found and found[0].error))
        assert "not a public address" in (found[0].error or "")
        assert receiver.heard == []


async def test_only_the_owner_and_those_for_all_are_told(runtime: Runtime) -> None:
    """B11, P7: and another owner's webhook is unknown."""
    async with receiving() as mine, receiving() as theirs, receiving() as everybodys, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks_of("ada").make(mine.url)
        await outlast.webhooks_of("ben").make(theirs.url)
        await outlast.webhooks_of("root").make(everybodys.url, is_for_all=True)
        await (await outlast.owned_by("ada").create()).ask("Hello")
        await (await outlast.owned_by("ben").create()).ask("Hello")
        await everybodys.has(2)
        await theirs.has(1)
        assert len(await mine.has(1)) == 1
        ben = outlast.webhooks_of("ben")
        with pytest.raises(NotFound):
            await ben.get(hook.id)
        for refused in (ben.rotate, ben.remove, ben.test, ben.deliveries):
            with pytest.raises(NotFound):
                await refused(hook.id)


async def test_what_was_not_committed_is_not_told_and_what_was_survives_a_restart(runtime: Runtime) -> None:
    """B11, P1, P3: the row is part of the commit."""
    async with receiving() as receiver:
        async with runtime(encryption_keys=KEYS) as outlast:
            hook, _ = await outlast.webhooks.make("http://localhost:1/")
            session_id = SessionId(await ask(outlast))
            with pytest.raises(ZeroDivisionError):
                await outlast.database.transaction(partial(_appends_and_fails, session_id=session_id), name="fails")
            await until(outlast, hook.id, lambda found: len(found) == 1 and found[0].error is not None)
        async with runtime(**HERE) as outlast:
            await outlast.webhooks.update(hook.id, url=receiver.url)
            assert len(await receiver.has(1)) == 1


def _appends_and_fails(unit: Unit, session_id: SessionId) -> None:
    unit.append(session_id, [Draft(EventType.SESSION_FLAGGED, {"reason": "test"})])
    raise ZeroDivisionError


async def test_a_sender_that_died_is_followed_by_another(runtime: Runtime) -> None:
    """B11: its lease runs out, and what it then tells counts no more."""
    async with runtime(encryption_keys=KEYS) as outlast:
        hook, _ = await outlast.webhooks.make("https://example.invalid/")
        await outlast.webhooks.update(hook.id, is_active=False)
        take = await outlast.database.transaction(lambda unit: _taken(unit, hook.id), name="take")
        (delivery,) = take[0]
        assert take[1] == [], "nobody else takes it meanwhile"
        late = moves.Attempt(204, None, 1)

        def overtaken(unit: Unit) -> None:
            found = moves.deliveries.find(unit.connection, hook.id, delivery.session_id, delivery.event)
            assert found is not None
            moves.deliveries.change(unit, found, attempts=found.attempts + 1)
            moves.told(unit, delivery, late)

        await outlast.database.transaction(overtaken, name="overtaken")
        (left,) = (await outlast.webhooks.deliveries(hook.id)).items
        assert left.state == "pending"


def _taken(unit: Unit, hook: str) -> tuple[Any, Any]:
    moves.deliveries.add(unit, hook, "local", "webhook.test", {}, until=timedelta(days=1))
    return moves.take(unit, WebhookId(hook), limit=4), moves.take(unit, WebhookId(hook), limit=4)


async def test_limits_and_what_is_refused(runtime: Runtime) -> None:
    """B11, G3"""
    async with runtime() as outlast:
        with pytest.raises(NoEncryptionKey, match="generate-encryption"):
            await outlast.webhooks.make("https://example.org/")
    async with runtime(**HERE) as outlast:
        for types in (["part.delta"], []):
            with pytest.raises(InvalidInput):
                await outlast.webhooks.make("https://example.org/", types=types)
        made = [await outlast.webhooks.make("https://example.org/") for _ in range(moves.MOST_PER_OWNER)]
        with pytest.raises(TooManyRequests):
            await outlast.webhooks.make("https://example.org/")
        await outlast.webhooks.remove(made[0].webhook.id)
        assert len(await outlast.webhooks.list()) == moves.MOST_PER_OWNER - 1


async def test_a_deleted_session_leaves_no_deliveries(runtime: Runtime) -> None:
    """D10, B11"""
    async with receiving() as receiver, runtime(**HERE) as outlast:
        hook, _ = await outlast.webhooks.make(receiver.url)
        session_id = await ask(outlast)
        await until(outlast, hook.id, are("delivered"))
        await outlast.sessions.delete(session_id)
        await until(outlast, hook.id, are())
