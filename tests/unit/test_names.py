"""Words that were given up, and verbs that mean one thing: a mechanism is called by the trade's own word."""

import re
from collections.abc import Mapping, Set
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


VERBS: Mapping[str, Set[str]] = {
    "settle": {"handles/tasks", "client/tasks", "cli/verbs/tasks"},
    "hold": {"transitions/turns/turn_start"},
    "leave": {"engines/presence", "engines/sweep", "runs/worker", "runs/task_runs", "runs/turns/attempt"},
    "give_back": {
        "duties/unrun_turns",
        "duties/webhooks",
        "engines/sweep",
        "runs/parked",
        "runs/turns/attempt",
        "runs/worker",
        "store/postgres/jobs",
        "transitions/tasks/task_moves",
        "transitions/turn",
        "transitions/webhooks",
    },
    "tell": {
        "handles/feed",
        "handles/following/merge",
        "protocols/ai_sdk/calls",
        "runs/turns/response_log",
        "transitions/schedules/fire_record",
        "transitions/tasks/task_moves",
    },
}
"""The modules with a function of that name, each in the one meaning that the table of verbs in `AGENTS.md` gives."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_keeps_its_one_meaning(verb: str) -> None:
    """Whoever defines it once more looks at the table first, and adds the module here or finds another word."""
    assert _modules_with(verb) == VERBS[verb]


def test_whoever_looks_changes_nothing() -> None:
    """To look is to read anew what may have changed: what changes things, or recurs, is called by what it does."""
    assert {each for each in _modules_with("look") if each.startswith(("transitions", "duties"))} == set()


def _modules_with(verb: str) -> set[str]:
    package, pattern = SOURCES / "outlast", re.compile(rf"def _?{verb}\(")
    found = (each for each in package.rglob("*.py") if pattern.search(each.read_text(encoding="utf-8")))
    return {each.relative_to(package).with_suffix("").as_posix() for each in found}
