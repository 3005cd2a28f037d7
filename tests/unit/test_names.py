"""Words that were given up: a mechanism is called by the trade's own word, and by no other."""

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"

RETIRED = {
    "Together": "GroupCommit",
    "Farewell": "ShutdownDeadline",
    "persistently": "retry_while_unavailable",
    "Workshop": "WorkerParts",
    "CallShop": "CallParts",
    "Desk": "ControlBackend",
    "BackgroundDesk": "BackgroundControl",
    "Ear": "SignalLatch",
    "JobTaker": "JobConsumer",
    "Crew": "Supervisor",
    "bury": "remove_dead",
    "_is_far": "_is_remote",
    "TurnLimits": "Limits",
    "ChatRoom": "ChatLoop",
    "LineEditor": "prompt_toolkit",
}


@pytest.mark.parametrize("word", RETIRED)
def test_a_word_that_was_given_up_is_not_used(word: str) -> None:
    pattern = re.compile(rf"(?<!\w){word}(?!\w)")
    found = [str(path) for path in SOURCES.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == [], f"write {RETIRED[word]}"
