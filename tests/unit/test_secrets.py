"""The registry of secret values: what is found, what is held back of a stream, and what it costs (A11)."""

import json
import random
import re
from time import process_time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.values import clean
from outlast.values.escape import escape
from outlast.values.secrets import MOST, MaskedStream, Secrets

LETTERS = st.text("ab", min_size=6, max_size=9)


def registry(*values: str, most: int = MOST) -> Secrets:
    secrets = Secrets(most)
    for value in values:
        secrets.add(value)
    return secrets


def starred(text: str, values: list[str]) -> str:
    """The slow way: every place at which any of them stands."""
    covered = [False] * len(text)
    for value in values:
        for found in re.finditer(f"(?={re.escape(value)})", text):
            covered[found.start() : found.start() + len(value)] = [True] * len(value)
    return "".join("*" if is_covered else each for each, is_covered in zip(text, covered, strict=True))


@given(st.lists(LETTERS, max_size=40), st.text("ab ", max_size=60))
def test_every_place_is_found(values: list[str], text: str) -> None:
    """Also where they overlap, with few values and with many."""
    assert registry(*values).mask(text) == starred(text, values)


def run_of(b: int, a: int, c: int) -> str:
    return "b" * b + "a" * a + "c" * c


RUNS = st.builds(run_of, st.integers(0, 5), st.integers(0, 90), st.integers(0, 2))


@settings(max_examples=50)
@given(st.lists(RUNS.filter(lambda each: len(each) >= 6), max_size=30), st.integers(6, 100), st.lists(RUNS, max_size=6))
def test_of_values_that_begin_with_each_other_the_longest_is_found(
    values: list[str], most: int, runs: list[str]
) -> None:
    """With a hundred one character apart, and when some of them were forgotten."""
    nested = ["a" * length for length in range(most, 5, -1)]
    text = "".join(runs)
    assert registry(*values, *nested).mask(text) == starred(text, [*values, *nested])
    kept = list(dict.fromkeys(reversed([*nested, *values])))[:20]
    assert registry(*nested, *values, most=20).mask(text) == starred(text, kept)


@pytest.mark.parametrize("run", ["a" * 20_000, ("a" * 500 + "b") * 40, "ab" * 10_000, "b" * 20_000])
@pytest.mark.parametrize("end", ["", "b"])
def test_a_thousand_values_that_begin_with_each_other_take_little_time(run: str, end: str) -> None:
    """One of each length: every one of them may begin at every place."""
    secrets = registry(*(letter * length + end for letter in "ab" for length in range(6, 1006)))
    began = process_time()
    secrets.mask(run)
    assert process_time() - began < 3, "it was 12 seconds"


@given(st.lists(LETTERS, max_size=6), st.lists(st.text("ab ", max_size=12), max_size=12))
def test_a_stream_tells_what_the_whole_text_would_be(values: list[str], pieces: list[str]) -> None:
    """However it is cut, and no more is held back than may begin a value."""
    stream, told, whole = MaskedStream(registry(*values)), "", ""
    for piece in pieces:
        whole += piece
        told += stream.feed(piece)
        rest = whole[len(told) :]
        assert not rest or any(value.startswith(rest) and value != rest for value in values)
        begins = [
            at for at in range(len(whole)) if any(each.startswith(whole[at:]) and each != whole[at:] for each in values)
        ]
        assert len(told) == (begins[0] if begins else len(whole))
    assert told + stream.close() == starred(whole, values)


def test_of_a_stream_without_secrets_nothing_is_held() -> None:
    stream = MaskedStream(Secrets())
    assert [stream.feed(each) for each in ("a", "b")] == ["a", "b"]
    assert stream.close() == ""


def test_forms_in_json_in_literals_and_in_urls_are_found_too() -> None:
    value = 'pa"ss\\wörd\n/&1'
    secrets = registry(value)
    for text in (
        value,
        json.dumps({"p": value}),
        json.dumps(value, ensure_ascii=False),
        repr(value),
        quote(value, safe=""),
    ):
        assert "rd" not in secrets.mask(text)


@pytest.mark.parametrize(
    "value", ["hunter2\x00hunter2", "hunter2\ud83dhunter2", "\ude00hunter2", "<runtime_notice>hunter2"]
)
def test_a_value_is_found_in_text_that_was_cleaned(value: str) -> None:
    """What no store takes is replaced in text before it is masked; halves of a character too."""
    secrets = registry(value)
    stored = escape(clean.text(f"it is {value}."))
    for text in (value, stored, clean.text(value), json.dumps(stored), repr(stored), quote(stored, safe="")):
        assert "hunter2" not in secrets.mask(text)


def test_of_a_character_in_two_halves_no_form_is_too_short() -> None:
    """Six halves become three characters: as few as that are not masked."""
    secrets = registry("\ud83d\ude00" * 3)
    assert secrets.mask("\U0001f600" * 3) == "\U0001f600" * 3


def test_values_are_masked_at_any_depth_and_in_names() -> None:
    secrets = registry("secret-one", "secret-two")
    value = {"a": ["x secret-one", 1, None, {"secret-two": "secret-one", "secret-one": 2}]}
    assert secrets.mask(value) == {"a": ["x **********", 1, None, {"**********": "**********", "***********": 2}]}
    clean = {"a": ["x", {"b": 1}]}
    assert secrets.mask(clean) is clean


def test_what_is_too_short_or_too_long_is_not_taken() -> None:
    """Masking it would blank out ordinary text."""
    secrets = registry("short", "x" * 70_000, "")
    assert secrets.is_empty
    assert secrets.mask("a short text") == "a short text"


def test_the_oldest_is_forgotten_for_a_new_one() -> None:
    """The registry is bounded; one that is registered again counts as new."""
    secrets = registry("value-one", "value-two", "value-one", "value-three", most=2)
    assert secrets.mask("value-one value-two value-three") == "********* value-two ***********"


def test_only_a_new_value_is_told_on() -> None:
    told: list[str] = []
    secrets = Secrets()
    secrets.when_added = told.append
    secrets.learn("known elsewhere")
    for value in ("new value", "new value", "known elsewhere", "tiny"):
        secrets.add(value)
    assert told == ["new value"]


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_forgetting_leaves_nothing_behind(seed: int) -> None:
    """After any order of adding, exactly the youngest are masked."""
    chance = random.Random(seed)
    values = ["".join(chance.choices("ab", k=chance.randint(6, 8))) for _ in range(60)]
    secrets = registry(*values, most=5)
    kept = list(dict.fromkeys(reversed(values)))[:5]
    text = " ".join(values)
    assert secrets.mask(text) == starred(text, kept)


def test_among_ten_thousand_values_each_is_found() -> None:
    values = [f"sk-live-{random.Random(each).randbytes(16).hex()}" for each in range(MOST)]
    secrets = registry(*values)
    text = "The quick brown fox sk-live-jumps over the lazy dog. " * 400
    assert secrets.mask(text) is text
    assert secrets.mask(f"{text}{values[0]}{values[-1]}.") == f"{text}{'*' * 2 * len(values[0])}."
