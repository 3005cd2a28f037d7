"""The judge of what was scheduled under chaos can fail: evidence that is sound, and the same with one thing wrong."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chaos.evidence import Evidence, LogEvent, Row, SessionRows
from chaos.fire_judge import fire_faults, fires_seen
from chaos.ledger import Entry

MINUTE = 60_000_000


def schedule(name: str, state: str, **values: Any) -> Row:
    row = {"id": name, "state": state, "cron": None, "at": 100, "due_at": None, "created_at": 30, "updated_at": 130}
    return {**row, **values}


def fire(of: str, number: int, due_at: int, **values: Any) -> Row:
    row = {"schedule_id": of, "number": number, "due_at": due_at, "at": due_at + 10, "outcome": "fired", "count": 1}
    return {**row, "reason": None, "late_seconds": 0.0, "input_id": None, "task_id": None, **values}


def task(name: str, of: str) -> Row:
    return {"id": name, "tool": "note", "links": json.dumps({"schedule": of})}


def fired(of: str, number: int, type_: str = "schedule.fired") -> LogEvent:
    return LogEvent(number, type_, None, {"schedule_id": of, "number": number})


def sound() -> Evidence:
    """One that says something, one that does something, one that was paused in time, and one of every minute."""
    minutes = [MINUTE, 2 * MINUTE, 3 * MINUTE]
    session = SessionRows(
        {"id": "s"},
        inputs=[{"id": "i1", "kind": "schedule", "text": "[t1:note]"}],
        tasks=[task("k2", "two"), *(task(f"k{at}", "every") for at in (3, 4, 5))],
        events=[fired("one", 1), fired("two", 1), *(fired("every", number) for number in (1, 2, 3))],
        schedules=[
            schedule("one", "ended"),
            schedule("two", "ended"),
            schedule("three", "paused"),
            schedule("every", "paused", cron="* * * * *", updated_at=3 * MINUTE + 20_000_000),
        ],
        fires=[
            fire("one", 1, 100, input_id="i1"),
            fire("two", 1, 100, task_id="k2"),
            *(fire("every", at, due, task_id=f"k{at + 2}") for at, due in enumerate(minutes, 1)),
        ],
    )
    asked = {"op": "schedule", "session": "s"}
    record: list[Row] = [
        {**asked, "token": "t1", "answer": "one"},
        {**asked, "token": "t2", "answer": "two"},
        {**asked, "token": "t3", "answer": "three"},
        {**asked, "token": "t4", "answer": "every", "cron": True},
    ]
    ledger = [Entry("k2", "k", "note", "before", 1, 110), Entry("k2", "k", "note", "after", 1, 120)]
    return Evidence({"s": session}, ledger, record, [], [], {})


def test_sound_evidence_has_no_faults() -> None:
    """F3: what the other test breaks is whole before."""
    assert list(fire_faults(sound())) == []
    assert fires_seen(sound())["fires of every minute"] == 3


Break = Callable[[Evidence, SessionRows], object]


def gone(_: Evidence, session: SessionRows) -> None:
    session.schedules.pop(0)
    session.fires.pop(0)


BROKEN: dict[str, tuple[str, Break]] = {
    "an accepted schedule is gone": ("fire_lost", gone),
    "one was made twice": ("fire_repeated", lambda _, s: s.schedules.append(schedule("again", "paused"))),
    "it is due for ever": ("fire_lost", lambda _, s: s.schedules[0].update(state="active", due_at=100)),
    "it fired twice": ("fire_repeated", lambda _, s: s.fires.append(fire("one", 2, 100, input_id="i1"))),
    "it fired after its pause": ("fire_repeated", lambda _, s: s.fires.append(fire("three", 1, 100, input_id="i1"))),
    "it ended and never fired": ("fire_lost", lambda _, s: s.fires.pop(0)),
    "it fired for another time": ("fire_lost", lambda _, s: s.fires[0].update(due_at=90)),
    "it fired too early": ("fire_repeated", lambda _, s: s.fires[0].update(at=99)),
    "it was left out": ("fire_lost", lambda _, s: s.fires[0].update(outcome="skipped", reason="overlap")),
    "its input is missing": ("fire_lost", lambda _, s: s.inputs.pop()),
    "it said it twice": ("fire_repeated", lambda _, s: s.inputs.append({**s.inputs[0], "id": "i2"})),
    "it began two tasks": ("fire_repeated", lambda _, s: s.tasks.append(task("k9", "two"))),
    "its tool ran twice": ("fire_repeated", lambda e, _: e.ledger.append(Entry("k2", "k", "note", "before", 2, 130))),
    "a minute is missing": ("fire_lost", lambda _, s: s.fires.pop(3)),
    "a minute came twice": ("fire_repeated", lambda _, s: s.fires.append({**s.fires[3], "number": 9})),
    "a minute that is none": ("fire_repeated", lambda _, s: s.fires.append(fire("every", 9, 2 * MINUTE + 5))),
    "its event is missing": ("fire_untold", lambda _, s: s.events.pop(0)),
    "it was told as skipped": ("fire_untold", lambda _, s: s.events.append(fired("one", 1, "schedule.skipped"))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_found(name: str) -> None:
    """F3: each fault by its kind."""
    evidence = sound()
    kind, damage = BROKEN[name]
    damage(evidence, evidence.sessions["s"])
    assert kind in {found[0] for found in fire_faults(evidence)}
