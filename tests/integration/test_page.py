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


async def shown(*events: tuple[str, dict[str, Any]]) -> str:
    given = [{"type": type_, "data": data, "turn_id": "trn_1"} for type_, data in events]
    show = f"for (const each of {json.dumps(given)}) show(each);"
    tell = "process.stdout.write(at('answer').textContent);"
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
        (said("long"), {"output": {"$file": {"as": "text"}}}, "long"),
    ],
)
async def test_the_page_shows_what_the_model_did_not_say(
    before: list[tuple[str, dict[str, Any]]], end: dict[str, Any], answer: str
) -> None:
    """K1: a typed output as JSON, a closing line as it is."""
    assert await shown(*before, ("turn.completed", end)) == answer
