"""Schemas from elsewhere: refused with words, and harmless to whoever checks a value against them."""

from time import process_time
from typing import Any

import pytest

from outlast.errors import InvalidInput
from outlast.values import json_schema


def tree() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(2_000):
        made = {"items": made}
    return made


ODD: list[Any] = [2**20_000, float("nan"), "\ud800", "a\x00b", [[]] * 1_000]


@pytest.mark.parametrize(
    "schema",
    [
        5,
        "text",
        ["type"],
        {"type": "nope"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "file:///etc/hostname"},
        {"pattern": "("},
        {"pattern": "(?=a)b"},
        {"description": "x" * json_schema.MAX_BYTES},
        {"multipleOf": 0},
    ],
    ids=repr,
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any) -> None:
    """B8, C2: nothing is fetched for it, and the fault is named."""
    with pytest.raises(InvalidInput, match="schema"):
        json_schema.check(schema)


def test_a_deep_schema_harms_nobody() -> None:
    try:
        checked = json_schema.check(tree())
    except InvalidInput:
        return
    assert json_schema.faults(checked, []) == []


def test_faults_are_named_with_their_places() -> None:
    schema = json_schema.check(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "ages": {"type": "array", "items": {"type": "integer"}}},
            "required": ["name"],
            "additionalProperties": False,
        }
    )
    assert json_schema.faults(schema, {"name": "Ada", "ages": [36]}) == []
    said = json_schema.faults(schema, {"ages": [1, "two"], "x": 1})
    assert any(each.startswith("ages[1]:") for each in said)
    assert any("name" in each for each in said)
    assert any("'x'" in each for each in said)
    many = json_schema.faults(schema, {"name": "Ada", "ages": ["a"] * 50})
    assert many[-1] == "and 45 more"


@pytest.mark.parametrize("value", ODD, ids=lambda _: "value")
def test_odd_values_are_judged_and_never_raise(value: Any) -> None:
    """They are judged as they would be stored."""
    assert json_schema.faults({"type": "object"}, value)


def test_a_pattern_is_matched_in_time_in_proportion_to_the_text() -> None:
    schema = json_schema.check({"type": "string", "pattern": "^(a+)+$"})

    def seconds(length: int) -> float:
        before = process_time()
        assert json_schema.faults(schema, "a" * length + "b")
        return process_time() - before

    seconds(1_000)
    assert seconds(400_000) < 100 * max(seconds(50_000), 0.001)
