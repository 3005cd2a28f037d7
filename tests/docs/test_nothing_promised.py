"""The reference names no state, origin, event or route that nothing brings about: what it lists, works."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from outlast import Outlast
from outlast.api import create_app
from outlast.events.types import EventType
from outlast.handles.one_session.seen import SessionState
from outlast.store.repositories.inputs import InputKind, InputState
from outlast.store.repositories.stored_task import WakePolicy
from outlast.store.repositories.turns import Origin, TurnState
from outlast.wire.task import TaskFilter
from outlast.wire.task_state import TaskState

PACKAGE = Path(__file__).parents[2] / "src" / "outlast"
VOCABULARIES = (TaskState, TurnState, Origin, InputKind, InputState, WakePolicy, EventType)
SHOWN = {
    "Task": {each.value for each in TaskState},
    "OutcomeAnswer": {each.value for each in TurnState},
    "SessionAnswer": set(get_args(SessionState)),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def brought_about(tree: ast.AST, *, is_used: bool = False) -> Iterator[tuple[str, str]]:
    """`Kind.MEMBER` where code runs with it or writes it: not among the moves, and not to compare with it."""
    if isinstance(tree, ast.Compare | ast.MatchValue):
        return
    if is_used and isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        yield tree.value.id, tree.attr
    for child in ast.iter_child_nodes(tree):
        is_written = isinstance(tree, ast.keyword | ast.AnnAssign) or (
            isinstance(tree, ast.Dict) and child in tree.values
        )
        is_plain = isinstance(child, ast.Attribute)
        yield from brought_about(child, is_used=is_used or isinstance(tree, FUNCTIONS) or (is_written and is_plain))


@pytest.fixture(scope="module")
def used() -> set[tuple[str, str]]:
    return {each for _, tree in trees() for each in brought_about(tree)}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Outlast(Agent(TestModel(), name="agent"), database="reference.db")).openapi()


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.__name__)
def test_every_word_is_brought_about_somewhere(vocabulary: type[StrEnum], used: set[tuple[str, str]]) -> None:
    """K6: a state that nothing sets would be waited for in vain."""
    assert [each.name for each in vocabulary if (vocabulary.__name__, each.name) not in used] == []


@pytest.mark.parametrize("name", SHOWN)
def test_an_answer_shows_the_states_that_there_are(name: str, document: dict[str, Any]) -> None:
    """K6: the schema lists them all, and no other."""
    schemas = document["components"]["schemas"]
    state = schemas[name]["properties"]["state"]
    assert set(schemas[state["$ref"].split("/")[-1]]["enum"] if "$ref" in state else state["enum"]) == SHOWN[name]


def test_tasks_are_listed_by_the_states_that_there_are(document: dict[str, Any]) -> None:
    """K6: over HTTP and in the client."""
    [state] = [each for each in document["paths"]["/v1/tasks"]["get"]["parameters"] if each["name"] == "state"]
    shown = next(each["enum"] for each in state["schema"]["anyOf"] if "enum" in each)
    assert set(shown) == set(get_args(TaskFilter)) == {"open", "settled", *SHOWN["Task"]}


def test_every_route_answers(document: dict[str, Any]) -> None:
    """K6: one that can only refuse is not offered."""
    answers = {
        each.name: _answers(each)
        for path, tree in trees()
        if "routes" in path.parts
        for each in ast.walk(tree)
        if isinstance(each, FUNCTIONS) and each.decorator_list
    }
    offered = {each["operationId"] for path in document["paths"].values() for each in path.values()}
    assert offered <= set(answers), "each was looked at"
    assert [name for name, is_answering in answers.items() if not is_answering] == []


def _answers(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    is_none = isinstance(function.returns, ast.Constant) and function.returns.value is None
    return is_none or any(isinstance(each, ast.Return | ast.Yield) for each in ast.walk(function))
