"""What a run needs around its model requests, and no more."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic_ai import Agent, ToolDefinition
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel

from outlast.agents.host import AgentHost
from outlast.agents.model_hook import ModelHook, around_requests


def measure(tools: Sequence[ToolDefinition]) -> None:
    return


IDLE = ModelHook(None, 0.75, tell=lambda data: None)
MODEL = TestModel()


@pytest.mark.parametrize(
    ("hook", "model"),
    [
        pytest.param(replace(IDLE, window=1_000), MODEL, id="a window is set"),
        pytest.param(IDLE, "openai:gpt-5", id="the window of a named model is not known yet"),
        pytest.param(IDLE, TestModel(profile={"context_window": 1_000}), id="the model has a window"),
        pytest.param(replace(IDLE, committed=ModelResponse(parts=[TextPart("Yes.")])), MODEL, id="asked before"),
        pytest.param(replace(IDLE, is_forced=True), MODEL, id="the request was too long"),
        pytest.param(replace(IDLE, measure_tools=measure), MODEL, id="the first run of an agent"),
    ],
)
def test_the_hook_is_there_when_it_may_have_something_to_do(hook: ModelHook, model: object) -> None:
    """D7, P2: compaction, and a response that is not asked for again."""
    assert around_requests(hook, model, []) == [hook]


def test_a_run_without_work_for_it_goes_without() -> None:
    """M2: pydantic-ai passes every event through every capability."""
    assert around_requests(IDLE, MODEL, []) == []


def said(*parts: SystemPromptPart | UserPromptPart) -> list[ModelMessage]:
    return [ModelRequest(parts=list(parts))]


@pytest.mark.parametrize(
    ("given", "is_there"),
    [
        ([], False),
        (said(SystemPromptPart("Be brief."), UserPromptPart("Hello.")), False),
        (said(UserPromptPart("Hello.")), True),
    ],
)
def test_only_a_history_from_elsewhere_gets_the_agents_system_prompt(given: list[ModelMessage], is_there: bool) -> None:
    """A1: a history without any was not begun by this agent."""
    assert [type(each) for each in around_requests(IDLE, MODEL, given)] == [ReinjectSystemPrompt] * is_there


def test_the_window_of_a_model_counts_that_an_override_has_set() -> None:
    """A1: also before one that was chosen for the turn."""
    agent, small = Agent(TestModel()), TestModel(profile={"context_window": 1_000})
    host = AgentHost(agent, None, {})
    assert host.model_for(None) is agent.model
    assert host.model_for("test") == "test"
    with agent.override(model=small):
        assert host.model_for(None) is host.model_for("test") is small
