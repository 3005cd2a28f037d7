"""A conversation of two thousand turns with a model whose window takes 16,000 tokens: it never ends for its length.

`python -m fuzz.long_conversation --turns 2000 --report fuzz/long-conversation.json`: once on a SQLite file, once on
PostgreSQL. Each turn has a tool's result of some thousand characters. The model stands for a provider that refuses what
does not fit, and the one that makes summaries does so too. At the end, in a new process' place, the model reads the
result of the first turn again, by the id that the summaries handed on.
"""

import argparse
import asyncio
import json
import logging
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_json

from outlast.agents.compact import CHARACTERS_PER_TOKEN
from outlast.testing import ScriptedModel, Step, call, error, last_user_text, tool_returns
from tests.support.stores.postgres import running_postgres
from tests.support.turns.runtime import Runtime, events_of

WINDOW = 16_000
_AGAIN = "What did you find first?"
_FIRST = re.compile(r"(?:CALL |first call: )(\S+)")


def finding(number: str) -> str:
    """What the tool finds: of some length, and no two alike."""
    return f"Depth {number}: " + " ".join(f"{number}.{each}" for each in range(400))


def size(messages: Sequence[ModelMessage]) -> int:
    return sum(len(_said(part)) for message in messages for part in message.parts)


def _said(part: object) -> str:
    said = getattr(part, "args", None) or getattr(part, "content", "")
    return said if isinstance(said, str) else to_json(said, fallback=str).decode()


def within_window(messages: Sequence[ModelMessage]) -> bool:
    return size(messages) <= WINDOW * CHARACTERS_PER_TOKEN


class Talk:
    """Two models: one that asks its tool once in each turn, and one that makes summaries."""

    def __init__(self) -> None:
        self.largest = self.refused = self.summaries = 0
        self.model = ScriptedModel(self._answer)
        self.summariser = ScriptedModel(self._summary)

    def _answer(self, messages: list[ModelMessage]) -> Step:
        self.model.requests.clear()
        self.largest = max(self.largest, size(messages))
        if not within_window(messages):
            self.refused += 1
            return error(ModelContextWindowExceededError("scripted", "too long"))
        if found := tool_returns(messages[-1:]):
            [result] = found.values()
            return json.dumps(result) if isinstance(result, dict) else f"Found it: {str(result)[:40]}"
        said = last_user_text(messages)
        if _AGAIN in said:
            known = _FIRST.search(_said(messages[0].parts[0]))
            return call("read_output", {"id": known[1] if known else "unknown", "length": 32_768})
        return call("sound", number=said.split()[-1])

    def _summary(self, messages: list[ModelMessage]) -> Step:
        """Hands on the id of the first call that it is told of, as a careful model would."""
        self.summariser.requests.clear()
        self.summaries += 1
        if not within_window(messages):
            return error(ModelContextWindowExceededError("scripted", "too long"))
        known = _FIRST.search(_said(messages[0].parts[-1]))
        return f"They sounded the river, again and again. The first call: {known[1] if known else 'unknown'} "


async def converse(runtime: Runtime, turns: int) -> dict[str, Any]:
    talk, seconds, failed = Talk(), list[float](), list[str]()

    async def sound(number: str) -> str:
        return finding(number)

    agent = Agent(talk.model, name="pilot", tools=[sound], instructions="You sound the river.")
    options: dict[str, Any] = {"agent": agent, "summary_model": talk.summariser, "context_window": WINDOW}
    async with runtime(**options) as outlast:
        session = await outlast.sessions.create()
        for number in range(turns):
            began = time.perf_counter()
            outcome = await session.ask(f"Sound number {number}")
            seconds.append(time.perf_counter() - began)
            if outcome.state != "completed":
                failed.append(f"turn {number}: {outcome.error}")
    async with runtime(**options) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.ask(_AGAIN)
        read = str(outcome.calls[0].result["text"]) if outcome.calls and outcome.calls[0].outcome == "success" else ""
        stored = len(await session.history())
        compacted = [each.data["reason"] for each in await events_of(session, "history.compacted")]
    some = max(1, turns // 20)
    return {
        "turns": turns,
        "turns_failed": len(failed),
        "first_failures": failed[:5],
        "messages_stored": stored,
        "summaries_made": talk.summaries,
        "compactions": {reason: compacted.count(reason) for reason in sorted(set(compacted))},
        "refused_as_too_long": talk.refused,
        "largest_request_tokens": talk.largest // CHARACTERS_PER_TOKEN,
        "first_result_read_again": read == finding("0"),
        "seconds_a_turn_at_the_beginning": round(_middle(seconds[:some]), 4),
        "seconds_a_turn_at_the_end": round(_middle(seconds[-some:]), 4),
    }


def is_sound(found: dict[str, Any]) -> bool:
    return not found["turns_failed"] and found["first_result_read_again"] and found["summaries_made"] > 0


def _middle(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.long_conversation", description="Talk on and on.")
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--report", type=Path, default=None, help="where to keep what was found, as JSON")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    found: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_postgres() as server,
        server.new_database(template=server.migrated()) as url,
    ):
        places = {"sqlite": Runtime(Path(folder) / "long.db"), "postgresql": Runtime(url, files=f"{folder}/files")}
        for store, runtime in places.items():
            found[store] = asyncio.run(converse(runtime, given.turns))
            print(store, json.dumps(found[store], indent=2), flush=True)
    if given.report is not None:
        given.report.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if all(map(is_sound, found.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
