"""Schemas from elsewhere: refused with words, and harmless to whoever checks a value against them."""

from time import process_time
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

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


def doubling(levels: int) -> dict[str, Any]:
    """Each level names the next one twice."""
    named = [{"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)]
    return {"$ref": "#/$defs/0", "$defs": {str(at): each for at, each in enumerate([*named, {"type": "string"}])}}


def branching() -> dict[str, Any]:
    """A list of itself, in three ways that all have to be tried."""
    of_itself = {"type": "array", "items": {"$ref": "#"}}
    return {"anyOf": [{"type": "integer"}, {**of_itself, "minItems": 2}, {**of_itself, "maxItems": 0}, of_itself]}


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "schema",
    [
        doubling(40),
        {
            "$ref": "#/$defs/a",
            "$defs": {each: {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]} for each in "ab"},
        },
        {"allOf": [{"pattern": f"a{{{times}}}"} for times in range(60)]},
        {"$defs": {"a": {"$id": "https://example.org/a", "$ref": "#"}}, "$ref": "https://example.org/a"},
    ],
    ids=["doubling", "leads to itself", "many patterns", "moves its references"],
)
def test_a_schema_that_asks_for_too_much_is_refused(schema: Any) -> None:
    """G3: a few lines of a model or of an MCP server would hold up the process that checks a value against them."""
    with pytest.raises(InvalidInput, match="too long"):
        json_schema.check(schema)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(40), "x"),
        (branching(), nested(60)),
        ({"items": {"pattern": "[01]*1[01]{300}!"}}, ["01101" * 10_000] * 10),
    ],
    ids=["doubling", "branching", "pattern"],
)
def test_a_value_that_would_take_too_long_is_told_so(schema: Any, value: Any) -> None:
    """G3: schemas of tools are not checked before; those that are may still be too much for some value."""
    (said,) = json_schema.faults(schema, value)
    assert "too long" in said


@pytest.mark.timeout(30)
def test_faults_of_a_large_value_are_not_all_written_out() -> None:
    """G3: each of them would hold the whole schema and what does not fit."""
    schema = json_schema.check({"items": {"enum": [[number] for number in range(5_000)]}})
    first, rest = json_schema.faults(schema, [[-1]] * 20_000)
    assert first.startswith("[0]: ")
    assert "too large" in rest
    assert json_schema.faults(schema, [[1]] * 20_000) == []


def test_a_value_that_is_a_tree_is_judged() -> None:
    """What stands in itself once for each of its parts takes no longer than the value is large."""

    class Tree(BaseModel):
        name: str
        left: "Tree | None" = None
        more: list["Tree"] = []

    value: dict[str, Any] = {"name": "leaf"}
    for _ in range(70):
        value = {"name": "branch", "left": value, "more": [{"name": "leaf"}]}
    schema = json_schema.check(Tree.model_json_schema())
    assert json_schema.faults(schema, value) == []
    assert json_schema.faults(schema, {**value, "name": 5})


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4)))
def test_counting_changes_no_verdict(value: Any) -> None:
    schema = {
        "$defs": {"list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "integer"}]}}},
        "$ref": "#/$defs/list",
    }

    def fits(each: Any) -> bool:
        return isinstance(each, list) and all(isinstance(one, int) or fits(one) for one in cast(list[Any], each))

    assert (json_schema.faults(schema, value) == []) == fits(value)
