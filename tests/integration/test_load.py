"""A short attack on a server process; `python -m fuzz.load` measures a long one (G3)."""

from pathlib import Path

import pytest

from fuzz.load import measure


@pytest.mark.timeout(300)
def test_an_attack_is_refused_and_another_owner_served(tmp_path: Path) -> None:
    """G3: strangers and one greedy owner at full force: all that another owner asks for succeeds."""
    figures = measure(tmp_path, 3.0, {"OUTLAST_MAX_OPEN_REQUESTS_PER_OWNER": "12"}, priority=0)
    assert figures["failures"] == []
    assert all(each["count"] > 0 for each in figures["requests"].values()), figures["requests"]
    assert sum(each["count"] for each in figures["turns"].values()) > 0, figures["turns"]
    answers = {kind.rpartition(": ")[0]: set[str]() for kind in figures["attack"]}
    for kind in figures["attack"]:
        name, _, answer = kind.rpartition(": ")
        answers[name].add(answer)
    assert not any(answer.startswith("5") for each in answers.values() for answer in each)
    assert answers["stranger, wrong key"] & {"401", "429"}
    assert "429" in answers["greedy, stream"]
    assert answers["greedy, import"] & {"201", "429"}, answers
    assert figures["log_bytes"] < 1_000_000
