"""What was scheduled, against what became of it: each time is decided once, and makes one input or one task.

A schedule of one time fires once, or not at all if it was paused or deleted before; one of every minute fires at each
minute from its making to its pause, however many workers die meanwhile.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from chaos.evidence import Evidence, Row, SessionRows
from chaos.ledger import Entry
from chaos.words import MAY_RUN_AGAIN, plans_in

FIRE_KINDS = ("fire_repeated", "fire_lost", "fire_untold")
Found = Iterator[tuple[str, str, str]]
"""The kind of fault, the session, and what is wrong."""

_MINUTE_US = 60_000_000
_AT_THE_PAUSE_US = 2_000_000
"""A minute that came so shortly before a pause may have been paused or fired."""


def fire_faults(found: Evidence) -> Found:
    entries = found.entries()
    deleted = {line["token"] for line in found.record if line["op"] == "unschedule"}
    for session_id, session in found.sessions.items():
        asked = [line for line in found.record if line["op"] == "schedule" and line["session"] == session_id]
        checks = [_accepted(session, [line for line in asked if line.get("answer")], deleted)]
        checks.append(_at_most_once(session, asked))
        for schedule in session.schedules:
            fires = [row for row in session.fires if row["schedule_id"] == schedule["id"]]
            checks.append(_every_minute(schedule, fires) if schedule["cron"] else _once(schedule, fires))
            checks += [_made(session, schedule, fire, entries) for fire in fires]
        for check in checks:
            for kind, what in check:
                yield kind, session_id, what


def _accepted(session: SessionRows, asked: Sequence[Row], deleted: set[str]) -> Iterator[tuple[str, str]]:
    kept = {row["id"] for row in session.schedules}
    for line in asked:
        if line["answer"] not in kept and line["token"] not in deleted:
            yield "fire_lost", f"the schedule {line['token']} was accepted as {line['answer']}, and is not there"
    if len(kept) > len({line["answer"] for line in asked}):
        yield "fire_repeated", f"{len(kept)} schedules are there, and {len(asked)} were asked for"


def _at_most_once(session: SessionRows, asked: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Also of one that was deleted with its history: what it said or began is there once at most."""
    said = Counter(token for row in session.inputs for token, _ in plans_in(row["text"]) if row["kind"] == "schedule")
    begun = Counter(json.loads(row["links"]).get("schedule") for row in session.tasks)
    for line in asked:
        count = said[line["token"]] + (0 if line.get("cron") else begun[line.get("answer")])
        if count > 1:
            yield "fire_repeated", f"the schedule {line['token']} made {count} inputs or tasks"


def _once(schedule: Row, fires: Sequence[Row]) -> Iterator[tuple[str, str]]:
    name, decided = schedule["id"], [fire["outcome"] for fire in fires]
    if len(fires) > 1 or (decided and schedule["state"] == "paused"):
        yield "fire_repeated", f"{name}, which is {schedule['state']}, was decided about as {decided}"
    if schedule["state"] == "active":
        yield "fire_lost", f"{name} was due at {schedule['due_at']} and is still"
    elif schedule["state"] == "ended" and not all(map(_is_as_said, fires)):
        yield "fire_lost", f"{name} was decided about as {decided}: {[fire['reason'] for fire in fires]}"
    elif schedule["state"] == "ended" and [fire["due_at"] for fire in fires] != [schedule["at"]]:
        yield "fire_lost", f"{name} of {schedule['at']} fired for {[fire['due_at'] for fire in fires]}"


def _is_as_said(fire: Row) -> bool:
    """Nothing was in its way but a session with too many tasks, which is its policy."""
    return fire["outcome"] == "fired" or fire["reason"] == "too_many_tasks"


def _every_minute(schedule: Row, fires: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """With `run_all`: all that were missed are made up for, the minutes of an outage too."""
    name = schedule["id"]
    first = schedule["created_at"] // _MINUTE_US * _MINUTE_US + _MINUTE_US
    last = schedule["updated_at"] // _MINUTE_US * _MINUTE_US
    counts = Counter(fire["due_at"] for fire in fires)
    for due_at in range(first, last + 1, _MINUTE_US):
        if not counts.pop(due_at, 0) and due_at < schedule["updated_at"] - _AT_THE_PAUSE_US:
            yield "fire_lost", f"{name} did not fire for {due_at}"
    for due_at in counts:
        yield "fire_repeated", f"{name} fired for {due_at}, which is none of its times"
    for due_at, count in Counter(fire["due_at"] for fire in fires).items():
        if count > 1:
            yield "fire_repeated", f"{name} fired {count} times for {due_at}"
    for fire in fires:
        if fire["outcome"] not in ("fired", "queued") or fire["count"] != 1:
            yield "fire_lost", f"{name} was {fire['outcome']} ({fire['reason']}) for {fire['due_at']}"


def _made(
    session: SessionRows, schedule: Row, fire: Row, entries: Mapping[str, Sequence[Entry]]
) -> Iterator[tuple[str, str]]:
    """One input or task, one event, and a tool that ran no more often than it may."""
    name = f"fire {fire['number']} of {schedule['id']}"
    if fire["due_at"] > fire["at"]:
        yield "fire_repeated", f"{name} was decided about before it was due"
    type_ = {"fired": "schedule.fired", "queued": None}.get(fire["outcome"], "schedule.skipped")
    told = Counter(
        event.type
        for event in session.events
        if event.type in ("schedule.fired", "schedule.skipped")
        and (event.data["schedule_id"], event.data["number"]) == (schedule["id"], fire["number"])
    )
    if told != Counter([type_] if type_ else []):
        yield "fire_untold", f"{name} is {fire['outcome']} and was told as {dict(told)}"
    if fire["outcome"] != "fired":
        return
    made = [row for row in (*session.inputs, *session.tasks) if row["id"] in (fire["input_id"], fire["task_id"])]
    if len(made) != 1:
        yield "fire_lost", f"{name} fired, and {len(made)} inputs or tasks are of it"
    for row in made:
        begun = sum(line.phase == "before" for line in entries.get(row["id"], ()))
        if begun > 1 and row.get("tool") not in MAY_RUN_AGAIN:
            yield "fire_repeated", f"{name} ran its tool {begun} times"


def fires_seen(found: Evidence) -> Counter[str]:
    """How much there was of each: what was never there proves nothing."""
    counts: Counter[str] = Counter()
    changed: dict[str, set[str]] = defaultdict(set)
    for line in found.record:
        if line["op"] in ("pause", "edit") and "token" in line:
            changed["refused" if "refused" in line else line["op"]].add(line["token"])
    for session in found.sessions.values():
        cron = {row["id"] for row in session.schedules if row["cron"]}
        counts["schedules"] += len(session.schedules)
        counts["schedules paused in time"] += sum(row["state"] == "paused" for row in session.schedules) - len(cron)
        for fire in session.fires:
            counts["fires of messages"] += fire["input_id"] is not None
            counts["fires of tools"] += fire["task_id"] is not None
            counts["fires of every minute"] += fire["schedule_id"] in cron
            counts["fires that were late"] += fire["late_seconds"] > 1
    counts["schedules changed when they were due"] = len(changed["pause"] | changed["edit"])
    counts["changes of schedules that came too late"] = len(changed["refused"])
    return counts
