"""What was set going on purpose, against what became of it: spawned, given to sub-sessions, asked, approved, completed.

Each is there once, was done at most once, and what came back to it is what somebody said first.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.evidence import Evidence, Row, SessionRows
from chaos.ledger import Entry
from chaos.words import ASKING, CHILD, MAY_RUN_AGAIN, SPAWN, child_token, told_by

WORK_KINDS = (
    "spawn_repeated",
    "spawn_lost",
    "child_repeated",
    "child_lost",
    "question_repeated",
    "answer_repeated",
    "answer_lost",
    "approval_repeated",
    "refused_run",
    "decision_lost",
    "completion_repeated",
    "completion_lost",
)
Found = Iterator[tuple[str, str, str]]
"""The kind of fault, the session, and what is wrong."""


@dataclass(slots=True)
class Work:
    """What the judge asks for again and again."""

    found: Evidence
    entries: Mapping[str, Sequence[Entry]]
    said: Mapping[str, Sequence[Row]]
    """By task, what people said of it and what they were told."""

    def begun(self, task: Row) -> int:
        return sum(line.phase == "before" for line in self.entries.get(task["call_id"] or task["id"], ()))

    def accepted(self, task: Row, *ops: str) -> list[Row]:
        return [line for line in self.said.get(task["id"], ()) if line["op"] in ops and line.get("answer")]


def work_faults(found: Evidence) -> Found:
    said: dict[str, list[Row]] = defaultdict(list)
    for line in found.record:
        if "task" in line:
            said[line["task"]].append(line)
    work = Work(found, found.entries(), said)
    for session_id, session in found.sessions.items():
        checks = (_spawned(session, work), _children(session, work), _requests(session), _outside(session, work))
        for check in checks:
            for kind, what in check:
                yield kind, session_id, what
        for task in session.tasks:
            check = _asked(task, work) if task["tool"] in ASKING else _decided(task, work)
            for kind, what in check:
                yield kind, session_id, what


def _spawned(session: SessionRows, work: Work) -> Iterator[tuple[str, str]]:
    """One task for each call that spawns, run once."""
    made = [task for task in session.tasks if task["origin"] == "spawn" and "schedule" not in links(task)]
    of_call = Counter(_args(task)["name"] for task in made)
    for name, count in of_call.items():
        if count > 1:
            yield "spawn_repeated", f"{name} was set going {count} times"
    for task in made:
        if task["tool"] not in MAY_RUN_AGAIN and work.begun(task) > 1:
            yield "spawn_repeated", f"task {task['id']} ran {work.begun(task)} times"
        if task["ended_at"] is None:
            yield "spawn_lost", f"task {task['id']} is {task['state']}"
        elif task["state"] == "succeeded" and not work.begun(task):
            yield "spawn_lost", f"task {task['id']} is told as done and never ran"
    known = {task["id"] for task in made}
    for call_id, handle in _handles(session, SPAWN):
        if handle["task_id"] not in known:
            yield "spawn_lost", f"{call_id} was told of task {handle['task_id']}, which is not there"


def _children(session: SessionRows, work: Work) -> Iterator[tuple[str, str]]:
    """One task and one child for each call, and the child's own answer."""
    given = [task for task in session.tasks if task["kind"] == "session"]
    for call_id, count in Counter(task["call_id"] for task in given).items():
        if count > 1:
            yield "child_repeated", f"{call_id} was given away {count} times"
    known = {task["id"] for task in given}
    for call_id, handle in _handles(session, CHILD):
        if handle["task_id"] not in known:
            yield "child_lost", f"{call_id} was told of task {handle['task_id']}, which is not there"
    children = {id_ for id_, each in work.found.sessions.items() if each.row.get("parent_id") == session.row["id"]}
    for child_id in children - {links(task)["child_session"] for task in given}:
        yield "child_repeated", f"{child_id} is the child of no task"
    for task in given:
        child = work.found.sessions.get(links(task)["child_session"])
        if child is None or task["ended_at"] is None:
            yield "child_lost", f"task {task['id']} is {task['state']}, its sub-session is there: {child is not None}"
        elif task["state"] == "succeeded":
            token = child_token(task["call_id"])
            if f"Done with {token}" not in str(task["result"]):
                yield "child_lost", f"the answer of {token}, told as {str(task['result'])[:80]}"
            if token not in child.told_tokens():
                yield "child_lost", f"{token} was never told to its sub-session"


def _requests(session: SessionRows) -> Iterator[tuple[str, str]]:
    """Each thing is asked once, and closed once."""
    opened: dict[str, Row] = {}
    closed = Counter(event.data["request_id"] for event in session.events if event.type == "request.closed")
    asked: Counter[tuple[Any, ...]] = Counter()
    for event in session.events:
        if event.type != "request.opened":
            continue
        request = event.data["request"]
        if request["id"] in opened:
            yield "question_repeated", f"{request['id']} was opened twice"
        opened[request["id"]] = request
        asked[event.task_id, request["kind"], request.get("ordinal"), request["prompt"]] += 1
    for what, count in asked.items():
        if count > 1:
            yield "question_repeated", f"task {what[0]} asked the same {count} times"
    for request_id, request in opened.items():
        if closed[request_id] != 1:
            kind = "answer_repeated" if closed[request_id] else "answer_lost"
            yield kind, f"{request['kind']} {request_id} was closed {closed[request_id]} times"


def _asked(task: Row, work: Work) -> Iterator[tuple[str, str]]:
    """What was accepted is kept, is one answer, and is what the tool went on with."""
    answers = _spec(task).get("answers", [])
    accepted = work.accepted(task, "reply")
    values = {line["value"] for line in accepted}
    if len(values) > 1 or len(answers) > 1:
        yield "answer_repeated", f"task {task['id']} took {sorted(values)}, and keeps {answers}"
    for line in accepted:
        if line["value"] not in [each["value"] for each in answers]:
            yield "answer_lost", f"{line['by']} was told that {line['token']} is answered, kept is {answers}"
    if task["state"] == "succeeded":
        told = [told_by(task["call_id"] or task["id"], each["value"]) for each in answers]
        if json.loads(task["result"]) not in told:
            yield "answer_lost", f"task {task['id']} went on with {task['result']}, was told {answers}"


def _decided(task: Row, work: Work) -> Iterator[tuple[str, str]]:
    """An approved call ran once, a refused one not at all, and the decision is that of whoever was told so."""
    request = json.loads(task["request"]) if task["request"] else None
    if request is None or request["kind"] != "approval":
        return
    closed, begun = request.get("closed", {}), work.begun(task)
    how, task_id = closed.get("how"), task["id"]
    if begun > 1:
        yield "approval_repeated", f"task {task_id} was approved and ran {begun} times"
    if begun and how != "approved":
        yield "refused_run", f"task {task_id} was {how} and ran"
    accepted = work.accepted(task, "approve", "refuse")
    for line in accepted:
        if how != {"approve": "approved", "refuse": "refused"}[line["op"]] or not _is(line["by"], closed.get("by")):
            yield "decision_lost", f"{line['by']} was told that {line['op']} counts, kept is {closed}"
    error = json.loads(task["error"] or "{}")
    is_lost = how == "approved" and not begun and task["state"] != "canceled" and error.get("kind") != "interrupted"
    if is_lost or (how == "refused" and error.get("kind") != "rejected"):
        yield "decision_lost", f"task {task_id} was {how} and is {task['state']}: {error}"


def _is(by: str, kept: str | None) -> bool:
    """Over HTTP the name of the key stands behind that of the person."""
    return kept is not None and (kept == by or kept.startswith(f"{by} ("))


def _outside(session: SessionRows, work: Work) -> Iterator[tuple[str, str]]:
    """One completion has one effect, and the one that was told that it counts is what stands."""
    tasks = [task for task in session.tasks if task["kind"] == "external"]
    for call_id, count in Counter(_spec(task)["opened_by"] for task in tasks).items():
        if count > 1:
            yield "completion_repeated", f"{call_id} opened {count} operations"
    for task in tasks:
        applied = work.accepted(task, "complete")
        if len(applied) > 1:
            yield "completion_repeated", f"two completions of {task['id']} were told that they count"
        answered = [line for line in work.said.get(task["id"], ()) if "answer" in line]
        if answered and task["ended_at"] is None:
            yield "completion_lost", f"task {task['id']} is {task['state']} after a completion"
        stands = [json.loads(task["result"] or "null"), json.loads(task["late_outcome"] or "{}").get("result")]
        for line in applied:
            if stands[0] != line["value"]:
                yield "completion_lost", f"{line['by']} completed {task['id']}, which is {task['state']}: {stands}"
        if answered and task["state"] != "canceled" and not any(line["value"] in stands for line in answered):
            yield "completion_lost", f"task {task['id']} is {task['state']} with {stands}"


def work_seen(found: Evidence) -> Counter[str]:
    """How much there was of each: what was never there proves nothing."""
    counts: Counter[str] = Counter()
    refused = Counter(line["op"] for line in found.record if "refused" in line)
    for session in found.sessions.values():
        for task in session.tasks:
            request: Row = json.loads(task["request"] or "{}")
            how = request.get("closed", {}).get("how")
            is_spawned = task["origin"] == "spawn"
            counts["spawned"] += is_spawned
            counts["spawned that waited for a place"] += is_spawned and (task["admitted_at"] or 0) > task["created_at"]
            counts["answers of sub-sessions"] += task["kind"] == "session" and task["state"] == "succeeded"
            counts["questions answered"] += how == "answered"
            counts["questions of sub-sessions two levels down"] += how == "answered" and _depth(session, found) == 2
            counts["answers found again by a second run"] += (
                how == "answered" and task["tool"] in MAY_RUN_AGAIN and task["attempt"] > 1
            )
            counts["approvals"] += how == "approved"
            counts["refusals"] += how == "refused"
            counts["operations completed"] += task["kind"] == "external" and task["state"] == "succeeded"
        counts["sub-sessions two levels down"] += _depth(session, found) == 2
    counts["second answers turned away"] = refused["reply"]
    counts["second decisions turned away"] = refused["approve"] + refused["refuse"]
    counts["second completions without effect"] = sum(
        line["op"] == "complete" and line.get("answer") is False for line in found.record
    )
    return counts


def _depth(session: SessionRows, found: Evidence) -> int:
    parent_id = session.row.get("parent_id")
    return 0 if parent_id is None else 1 + _depth(found.sessions[parent_id], found)


def _handles(session: SessionRows, tool: str) -> Iterator[tuple[str, Row]]:
    for part in session.parts("tool-return"):
        if part["tool_name"] == tool and isinstance(part["content"], dict) and "task_id" in part["content"]:
            yield part["tool_call_id"], part["content"]


def links(task: Row) -> Row:
    return json.loads(task["links"])


def _spec(task: Row) -> Row:
    return json.loads(task["spec"])


def _args(task: Row) -> Row:
    return _spec(task)["args"]
