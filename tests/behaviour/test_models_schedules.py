"""The model's own schedules: made, listed and cancelled in its session alone."""

from datetime import UTC, datetime
from typing import Any

from pydantic_ai import Tool

from outlast import Session
from outlast.testing import ManualClock, call, last_user_text, next_fire
from tests.behaviour.test_schedules import PATIENCE, double, ran
from tests.support.turns.runtime import Runtime, events_of, scripted

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


async def results(session: Session) -> list[Any]:
    """What the model was given for its calls, in their order."""
    return [each.data["part"]["content"] for each in await events_of(session, "call.ended")]


async def test_the_model_schedules_lists_and_cancels(embedded: Runtime) -> None:
    """F1, F5: it is told the next time in its zone, and at the fire that it made the schedule itself."""
    clock = ManualClock(START)
    model = scripted(
        call("schedule", text="Check the mail.", when="30 10 * * *", zone="Europe/Berlin", title="mail"),
        call("list_schedules"),
        "Set.",
        "Checked.",
    )
    async with embedded(model, clock=clock) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Each morning.", wait=PATIENCE)
        first, listed = await results(session)
        assert (first["next"], first["made_by"]) == ("2026-01-05 10:30 CET", "model")
        assert [each["schedule_id"] for each in listed["schedules"]] == [first["schedule_id"]]
        made = await outlast.schedules.get(first["schedule_id"])
        assert made.made_by.kind == "model"
        await next_fire(outlast, clock)
        await ran(outlast, made, 1)
        await session.settled(wait=PATIENCE)
        assert "you made it" in last_user_text(model.requests[-1].messages)
    async with embedded(scripted(call("cancel_schedule", schedule_id=made.id), "Gone."), clock=clock) as outlast:
        await (await outlast.sessions.get(session.id)).ask("No more.", wait=PATIENCE)
        assert (await outlast.schedules.list()).items == []


async def test_the_model_cancels_only_in_its_own_session(embedded: Runtime) -> None:
    """F5, P7: another session's schedule is not there, also of the same owner."""
    async with embedded() as outlast:
        made = await (await outlast.sessions.create()).schedule("Look.", cron="0 0 * * *")
    async with embedded(scripted(call("cancel_schedule", schedule_id=made.id), "No.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Cancel it.", wait=PATIENCE)
        assert "no such schedule" in str(await results(session))
        assert (await outlast.schedules.get(made.id)).state == "active"


async def test_spawn_background_takes_a_schedule(embedded: Runtime) -> None:
    """B3, F4: a tool at its times, or as a monitor; what does not fit is told and nothing is kept."""
    clock = ManualClock(START)
    spawn: dict[str, Any] = {"tool": "double", "args": {"number": 21}}
    model = scripted(
        call("spawn_background", **spawn, schedule="in 20 minutes", wake="silent"),
        call("spawn_background", **spawn, schedule="*/5 * * * *", wake_if={"kind": "above", "value": 50}),
        call("spawn_background", **spawn, schedule="whenever"),
        call("spawn_background", **spawn, wake_if={"kind": "changed"}),
        call("spawn_background", tool="double", args={"number": "x"}, schedule="in 1 minute"),
        "Set.",
    )
    async with embedded(model, tools=[Tool(double)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.", wait=PATIENCE)
        once, monitor, *refused = await results(session)
        assert (once["next"], once["tool"]) == ("2026-01-05 08:20 UTC", "double")
        assert monitor["condition"] == "its result is above 50"
        for words, told in zip(("is no time", "give it a cron", "do not fit"), refused, strict=True):
            assert words in str(told)
        found = {each.kind: each for each in (await outlast.schedules.list()).items}
        assert set(found) == {"tool", "monitor"}
        for _ in range(4):
            await next_fire(outlast, clock)
        await ran(outlast, found["tool"], 1)
