"""Schedules over HTTP, with the client, and with the command (F1, F3, F5)."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Tool
from typer.testing import CliRunner

from outlast import Client
from outlast.cli.main import app
from outlast.errors import Conflict, InvalidInput, NotFound
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime


async def double(number: int) -> int:
    return 2 * number


async def test_a_schedule_lives_over_http(runtime: Runtime) -> None:
    """F5: 201, once with a key; listed, edited, paused, resumed, triggered, its fires, and deleted."""
    async with serving(runtime(lambda _: "Yes.", tools=[Tool(double)])) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        body = {"session_id": session, "text": "Look.", "cron": "30 2 * * *", "zone": "Europe/Berlin", "title": "t"}
        made = [await ada.post("/v1/schedules", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        assert [each.status_code for each in made] == [201, 201]
        one = made[0].json()
        assert one["id"] == made[1].json()["id"]
        assert (one["state"], one["kind"], one["made_by"]["kind"]) == ("active", "message", "person")
        assert one["next_at"].endswith(("+01:00", "+02:00"))
        place = f"/v1/schedules/{one['id']}"
        assert [each["id"] for each in (await ada.get("/v1/schedules")).json()["items"]] == [one["id"]]
        edited = await ada.patch(place, json={"cron": "0 4 * * *", "title": None})
        assert (edited.json()["cron"], edited.json()["title"], edited.json()["zone"]) == (
            *("0 4 * * *", None, "Europe/Berlin"),
        )
        assert (await ada.post(f"{place}/pause")).json()["reason"] == "asked"
        assert (await ada.post(f"{place}/resume")).json()["state"] == "active"
        assert (await ada.post(f"{place}/trigger")).json()["fired"] == 1
        (fire,) = (await ada.get(f"{place}/fires")).json()["items"]
        assert fire["how"] == "triggered"
        preview = await ada.post("/v1/schedules/preview", json={"cron": "30 2 * * *", "zone": "Asia/Tokyo", "count": 2})
        assert [each[10:] for each in preview.json()["times"]] == ["T02:30:00+09:00"] * 2
        assert (await ada.delete(place)).status_code == 204
        assert (await ada.get(place)).status_code == 404


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, None),
        ({"cron": "* * *"}, "cron"),
        ({"delay": "soon"}, "delay"),
        ({"at": "x"}, "at"),
        ({"cron": "0 0 * * *", "zone": "../etc/passwd"}, "zone"),
        ({"cron": "0 0 * * *", "zone": "\x00"}, "zone"),
        ({"cron": "0 0 * * *", "tool": "double", "text": None, "condition": {"kind": "matches", "value": "("}}, None),
        ({"at": "9999-12-31T23:59:59Z"}, "far"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "at"),
        ({"cron": "²³ * * * *"}, "cron"),
        ({"cron": "99999999999999999999 * * * *"}, "cron"),
    ],
)
async def test_bad_input_is_a_422_that_names_its_fault(
    runtime: Runtime, given: dict[str, Any], field: str | None
) -> None:
    """F1, G3: never a 5xx."""
    async with serving(runtime(tools=[Tool(double)])) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        answer = await ada.post("/v1/schedules", json={"session_id": session, "text": "Look.", **given})
        if field == "far":
            assert answer.status_code == 201
            return
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        if field is not None:
            assert answer.json()["detail"].startswith(f"{field}:")


async def test_another_owners_schedule_is_not_there(runtime: Runtime) -> None:
    """P7, G2: the same answer as for an id that never was, whatever is asked; also for a session of another's."""
    async with serving(runtime()) as server:
        ada, bob = await server.client(), await server.client("bob")
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        body = {"session_id": session, "text": "Look.", "cron": "0 0 * * *"}
        made = (await ada.post("/v1/schedules", json=body)).json()["id"]
        for verb, tail in (
            *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/fires")),
            *(("POST", "/pause"), ("POST", "/resume"), ("POST", "/trigger")),
        ):
            sent: dict[str, Any] | None = {} if verb == "PATCH" else None
            strange = await bob.request(verb, f"/v1/schedules/{made}{tail}", json=sent)
            unknown = await bob.request(verb, f"/v1/schedules/sch_none{tail}", json=sent)
            assert (strange.status_code, unknown.status_code) == (404, 404), (verb, tail)
        assert (await bob.post("/v1/schedules", json=body)).status_code == 404
        assert (await bob.get("/v1/schedules")).json()["items"] == []


async def test_the_client_has_the_same(runtime: Runtime) -> None:
    """F5, D1."""
    async with serving(runtime(lambda _: "Yes.", tools=[Tool(double)])) as server:
        token = (await server.client()).headers["Authorization"].removeprefix("Bearer ")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()
            made = await client.schedules.create(session.id, tool="double", args={"number": 2}, cron="0 0 * * *")
            edited = await client.schedules.edit(made.id, args={"number": 3}, title="three")
            assert (edited.args, edited.title) == ({"number": 3}, "three")
            assert (await client.schedules.pause(made.id)).state == "paused"
            assert (await client.schedules.trigger(made.id)).fired == 1
            assert (await client.schedules.resume(made.id)).state == "active"
            assert [each.number for each in (await client.schedules.fires(made.id)).items] == [1]
            assert len((await client.schedules.preview(delay="1 hour")).times) == 1
            await client.schedules.delete(made.id)
            with pytest.raises(NotFound):
                await client.schedules.get(made.id)
            with pytest.raises(InvalidInput, match="exactly one"):
                await client.schedules.create(session.id, "Look.")
            once = await client.schedules.create(session.id, "Look.", delay="1 hour")
            await client.sessions.get(session.id)
            assert once.cron is None
            assert Conflict.code == "conflict"


@pytest.fixture
def here_is_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_the_command_has_the_same(runtime: Runtime, here_is_utc: None) -> None:
    """F1, F5, D1: made, listed with the next time, in its zone and yours, shown with its fires, and deleted."""
    async with serving(runtime(lambda _: "Yes.")) as server:
        token = (await server.client()).headers["Authorization"].removeprefix("Bearer ")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()

        async def said(*words: str) -> str:
            given = ["schedules", *words, "--url", server.url, "--token", token]
            done = await asyncio.to_thread(CliRunner().invoke, app, given)
            assert done.exit_code == 0, done.output
            return done.stdout

        made = (await said("create", session.id, "Look.", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")).split()[0]
        assert made.startswith("sch_")
        listed = await said("list")
        assert made in listed
        assert "30 2 * * * Europe/Berlin" in listed
        assert "02:30" in listed
        await said("trigger", made)
        assert "triggered" in await said("fires", made)
        assert "paused: asked" in await said("pause", made)
        assert "active" in await said("resume", made)
        assert "0 4 * * *" in await said("edit", made, "--cron", "0 4 * * *") + await said("show", made)
        await said("edit", made, "--cron", "0 4 * * *", "--zone", "Asia/Kathmandu")
        assert re.search(r"04:00\+05:45\s+\(\d{4}-\d\d-\d\d\s+22:15\+00:00\s+here\)", await said("show", made))
        assert len(json.loads(await said("preview", "--in", "1 hour", "--json"))["times"]) == 1
        assert "Deleted." in await said("delete", made)
