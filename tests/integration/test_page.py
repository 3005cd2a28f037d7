"""The page to try a server with: what its script makes of events, without a browser."""

import json
from pathlib import Path
from typing import Any

import pytest

import outlast
from tests.integration.test_ai_sdk import run_node

PAGE = Path(outlast.__file__).parent / "api" / "page.js"

DOM = """
class Node {
  constructor(name) { Object.assign(this, { name, className: "", kids: [] }); }
  append(...more) { this.kids.push(...more); }
  appendChild(one) { this.kids.push(one); return one; }
  remove() { this.kids = []; }
  addEventListener() {}
  get textContent() { return this.kids.map((each) => each.textContent ?? each).join(""); }
  set textContent(text) { this.kids = [text]; }
}
const named = {};
globalThis.document = {
  getElementById: (id) => (named[id] ??= new Node(id)),
  createElement: (name) => new Node(name),
};
globalThis.location = { hash: "", pathname: "/" };
globalThis.fetch = async () => { throw new TypeError("no network"); };
"""


async def shown(*events: tuple[str, dict[str, Any]], at: str = "answer") -> str:
    given = [{"type": type_, "data": data, "turn_id": "trn_1"} for type_, data in events]
    show = f"for (const each of {json.dumps(given)}) show(each);"
    tell = f"process.stdout.write(at({json.dumps(at)}).textContent);"
    script = "\n".join([DOM, PAGE.read_text().replace('"use strict";', ""), show, tell])
    return await run_node("--eval", script)


def said(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [("part.started", {"part": "1.1.0", "kind": "text"}), ("part.delta", {"part": "1.1.0", "text": text})]


@pytest.mark.parametrize(
    ("before", "end", "answer"),
    [
        ([], {"output": {"city": "Oslo"}}, '\n{"city":"Oslo"}\n'),
        ([], {"output": 0}, "\n0\n"),
        ([], {"output": False}, "\nfalse\n"),
        ([], {"output": None}, ""),
        ([], {"output": "by a function"}, "\nby a function\n"),
        ([], {"output": "", "text": "Done."}, "\nDone.\n"),
        (said("Hello."), {"output": "Hello."}, "Hello."),
        (said("Here."), {"output": ["a"]}, 'Here.\n["a"]\n'),
        (said('{"city": "Oslo"}'), {"output": {"city": "Oslo"}}, '{"city": "Oslo"}'),
        (said("long words"), {"output": {"$file": {"as": "text", "bytes": 70_000, "preview": "long"}}}, "long words"),
        (
            [],
            {"output": {"$file": {"key": "k", "as": "json", "bytes": 349_000, "preview": "[1,2"}}},
            "\n[1,2… (349,000 bytes)\n",
        ),
        (said("[1, 2, 3]"), {"output": {"$file": {"as": "json", "bytes": 349_000, "preview": "[1,2"}}}, "[1, 2, 3]"),
        (
            said("Here."),
            {"output": [{"$file": {"key": "k", "bytes": 9, "preview": "a"}}, 2]},
            'Here.\n["a… (9 bytes)",2]\n',
        ),
        (
            [],
            {"output": {"picture": {"$file": {"key": "k", "as": "base64", "bytes": 9}}}},
            '\n{"picture":"(9 bytes)"}\n',
        ),
    ],
)
async def test_the_page_shows_what_the_model_did_not_say(
    before: list[tuple[str, dict[str, Any]]], end: dict[str, Any], answer: str
) -> None:
    """K1: a typed output as JSON, a closing line as it is."""
    assert await shown(*before, ("turn.completed", end)) == answer


def ended(outcome: str, content: Any = "ok") -> tuple[str, dict[str, Any]]:
    part = {"content": content, "outcome": outcome}
    return ("call.ended", {"call_id": "c1", "tool": "boom", "outcome": outcome, "part": part})


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (ended("success"), "\n[boom]\n"),
        (ended("failed", "The kettle is broken."), "\n[boom] failed: The kettle is broken.\n"),
        (ended("failed", {"$file": {"bytes": 70_000, "preview": "No"}}), "\n[boom] failed: No… (70,000 bytes)\n"),
        (ended("retried", "Say it in kelvin."), "\n[boom] failed, the model may try again: Say it in kelvin.\n"),
        (ended("interrupted", "Nobody knows."), "\n[boom] interrupted: Nobody knows.\n"),
        (ended("parked", {"type": "background"}), "\n[boom] goes on in the background\n"),
    ],
)
@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "resumed"])
async def test_the_page_shows_how_a_call_ended(end: tuple[str, dict[str, Any]], answer: str, is_asked: bool) -> None:
    """One that did not work does not look like one that did, also if an earlier attempt of the turn asked for it."""
    asked = [("part.started", {"part": "1.1.0", "kind": "call", "call_id": "c1", "tool": "boom"})]
    assert await shown(*(asked if is_asked else []), end) == answer


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ({"state": "running"}, "survey: running 88 % (tsk_1)"),
        ({"state": "running", "progress": {"current": 150, "total": 100}}, "survey: running 100 % (tsk_1)"),
        ({"state": "running", "progress": {"current": -5, "total": 100}}, "survey: running 0 % (tsk_1)"),
        ({"state": "succeeded"}, "survey: succeeded (tsk_1)"),
        ({"state": "failed", "error": {"message": "No boat."}}, "survey: failed: No boat. (tsk_1)"),
        ({"state": "canceled"}, "survey: canceled (tsk_1)"),
        ({"state": "failed", "settled": {"verdict": "worked"}}, "survey: settled: worked (tsk_1)"),
    ],
)
async def test_the_page_shows_how_far_a_task_is_while_it_runs(task: dict[str, Any], line: str) -> None:
    """How far it had come when it was over says nothing; why it failed does."""
    known = {"id": "tsk_1", "title": "survey", "progress": {"current": 88, "total": 100}, "error": None, **task}
    assert await shown(("task.changed", {"task": known}), at="tsk_1") == line
