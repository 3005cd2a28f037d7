"""What is stored can always be read back: any value, through every door, on both stores (A2, G3)."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from fuzz import nasty
from fuzz.hostile_agent import Report, run
from outlast.values import clean, row_json
from tests.support.turns.runtime import Runtime

RANDOM = st.randoms(use_true_random=False)


@pytest.fixture(autouse=True)
def few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what has no end takes no second."""
    monkeypatch.setattr(clean, "REPEATED", 5_000)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RANDOM)
def test_any_value_becomes_json_that_is_read_back_as_it_is(random: Random) -> None:
    cleaned = clean.value(nasty.value(random))
    told, text = row_json.written(cleaned)
    assert from_json(text, allow_inf_nan=False) == told == cleaned
    assert to_json(cleaned), "no surrogate, no foreign object"
    json.loads(text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters()) | RANDOM.map(nasty.text))
def test_any_text_becomes_one_that_every_store_takes(text: str) -> None:
    cleaned = clean.text(text)
    assert cleaned.encode().decode() == cleaned
    assert "\x00" not in cleaned
    assert clean.text(cleaned) == cleaned
    assert len(cleaned) <= len(text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False), st.lists))
def test_an_ordinary_value_stays_what_it_is(value: Any) -> None:
    if "\\u0000" not in (encoded := json.dumps(value)) and "Infinity" not in encoded:
        assert clean.value(value) == value
    assert row_json.is_readable(row_json.write(value).encode())


@pytest.mark.parametrize("make", nasty.ODDITIES, ids=range(len(nasty.ODDITIES)))
def test_each_oddity_has_a_form_as_json(make: Any) -> None:
    assert row_json.is_readable(to_json(clean.value(make())))
    assert row_json.is_readable(to_json(clean.value({"held": [make()]})))
    assert len(clean.words_of(make())) < 600
    assert clean.number(make()) is None or abs(clean.number(make()) or 0) <= 10**15


def test_what_stands_in_a_value_again_and_again_is_written_out_only_so_often() -> None:
    """A few lists that hold each other twice hold up nothing else; as many that are all different stay whole."""
    twice: list[Any] = []
    for _ in range(40):
        twice = [twice, twice]
    assert to_json(clean.value(twice)).count(b"[") < 20_000
    rows = [{"row": [number]} for number in range(20_000)]
    assert clean.value(rows) == rows


def test_values_whose_names_become_one_are_all_kept() -> None:
    given = {f"k{odd}": number for number, odd in enumerate(("\x00", "\ufffd", "\ud800"))}
    assert clean.value(given) == {"k\ufffd": 0, "k\ufffd (2)": 1, "k\ufffd (3)": 2}


def test_two_halves_of_a_character_become_one() -> None:
    assert clean.text("a\ud83d" + "\ude00b") == "a😀b"


@pytest.mark.timeout(300)
async def test_a_hostile_agent_leaves_nothing_that_cannot_be_read(database_url: str, tmp_path: Path) -> None:
    """G3: no 5xx, no page that cannot be read, no turn that fails for the oddity of a call, no sound call disturbed.

    `python -m fuzz.hostile_agent` does the same two thousand times.
    """
    report = Report()
    await run(Runtime(database_url, files=str(tmp_path / "files")), range(16), report, store="here", view_every=None)
    assert report.failures == []
    assert report.cases["here"] == 16
