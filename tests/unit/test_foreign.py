"""What is masked of the runtime's own objects: the words of others, and nothing else (A11)."""

import dataclasses
import inspect
import json
from datetime import datetime
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import pytest
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from outlast.agents.messages import history
from outlast.events.foreign import FOREIGN, masked
from outlast.events.types import EventType
from outlast.values import foreign
from outlast.values.secrets import SHORTEST, Secrets

VALUE = "sk-live-4711"
STARS = "*" * len(VALUE)


def registry(*values: str) -> Secrets:
    secrets = Secrets()
    for value in values:
        secrets.add(value)
    return secrets


def messages() -> list[ModelMessage]:
    picture = BinaryContent(b"\x89PNG\x00\x00\x00\x00\x00", media_type="image/png")
    request: list[ModelRequestPart] = [
        SystemPromptPart(f"be {VALUE}"),
        UserPromptPart([VALUE, picture, ImageUrl(f"https://a.example/{VALUE}.png"), TextContent(VALUE)]),
        ToolReturnPart("survey", {VALUE: [VALUE, picture], "content": {"kind": VALUE}}, "call-1", metadata={VALUE: 1}),
        ToolReturnPart("survey", VALUE, "call-2", outcome="failed"),
        RetryFeedbackPart(f"not {VALUE}", retry=RetryInfo("model_retry")),
    ]
    response: list[ModelResponsePart] = [
        TextPart(VALUE, id="msg_0001", provider_name="openai", provider_details={"phase": VALUE}),
        ThinkingPart(VALUE, signature="signature"),
        ToolCallPart("survey", {VALUE: VALUE}, "call-1"),
        ToolCallPart("survey", json.dumps({"key": VALUE}), "call-2"),
    ]
    return [
        ModelRequest(request, instructions=VALUE, metadata={"key": VALUE}),
        ModelResponse(response, model_name="gpt-5-large", finish_reason="tool_call", provider_details={"id": VALUE}),
    ]


def words_of(value: Any) -> set[str]:
    """All names and texts in a JSON value."""
    if isinstance(value, dict):
        return {word for pair in cast(dict[Any, Any], value).items() for each in pair for word in words_of(each)}
    if isinstance(value, list):
        return {word for each in cast(list[Any], value) for word in words_of(each)}
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize("message", messages(), ids=["request", "response"])
def test_all_that_others_wrote_in_a_message_is_masked(message: ModelMessage) -> None:
    shown = history.masked(message, registry(VALUE))
    assert VALUE not in history.encode_small(shown)
    assert STARS in history.encode_small(shown)


@pytest.mark.parametrize("message", messages(), ids=["request", "response"])
def test_every_word_of_a_message_may_be_registered(message: ModelMessage) -> None:
    """It can still be read, and is the same but for what others wrote."""
    plain = history.message_type().dump_python(message, mode="json")
    words = {each[start : start + 40] for each in words_of(plain) if len(each) >= SHORTEST for start in (0, 1, 4)}
    shown = history.masked(message, registry(*words))
    again = history.message_type().dump_python(shown, mode="json")
    assert again.keys() == plain.keys()
    for part, before in zip(again["parts"], plain["parts"], strict=True):
        assert part.keys() == before.keys()
        assert {name: part[name] for name in part if name in foreign.OWN} == {
            name: before[name] for name in before if name in foreign.OWN
        }


def all_classes() -> list[type[Any]]:
    found = [
        each for _, each in inspect.getmembers(pydantic_messages, inspect.isclass) if dataclasses.is_dataclass(each)
    ]
    in_messages = {"Part", "Content", "Url", "Source", "Anchor", "Citation", "Info", "Request", "Response", "File"}
    return [each for each in found if any(each.__name__.endswith(end) for end in in_messages)]


@pytest.mark.parametrize("kind", all_classes(), ids=lambda each: each.__name__)
def test_what_pydantic_ai_chooses_from_a_list_is_its_own(kind: type[Any]) -> None:
    """A field of a newer version that takes only some words, or an instant, has to be named before it is masked."""
    for name, hint in get_type_hints(kind).items():
        if name.startswith("_") or name not in {each.name for each in dataclasses.fields(kind)}:
            continue
        options = [hint, *get_args(hint)]
        if any(get_origin(each) is Literal or each is datetime for each in options):
            assert name in foreign.OWN
        if any(get_origin(each) is dict for each in options):
            assert name in foreign.ANYTHING | foreign.VALUES | {"metadata"}


def test_marks_of_the_runtime_in_metadata_stay() -> None:
    """By them a call is known that cannot be run again."""
    call = ModelResponse([ToolCallPart("use", {"key": VALUE}, "outlast_masked_calls")])
    secrets = registry(VALUE, "outlast_masked_calls")
    once = history.masked(call, secrets)
    assert history.masked_calls([history.masked(once, secrets)]) == {"outlast_masked_calls"}


def test_each_type_of_event_says_what_others_wrote_in_it() -> None:
    assert set(FOREIGN) == set(EventType)


def test_of_an_event_only_the_words_of_others_are_masked() -> None:
    secrets = registry("message", "call_id", "outcome", "success", "preview", "base64", "current")
    data: dict[str, Any] = {
        "call_id": "call_id",
        "outcome": "success",
        "part": {"part_kind": "tool-return", "outcome": "success", "content": {"message": "success"}},
        "content": {"$file": {"key": "ses_1/2", "as": "base64", "bytes": 3, "preview": "a message"}},
        "artifacts": [{"id": "message", "name": "message", "bytes": 1}],
    }
    assert masked("call.ended", data, secrets) == {
        "call_id": "call_id",
        "outcome": "success",
        "part": {"part_kind": "tool-return", "outcome": "success", "content": {"*******": "*******"}},
        "content": {"$file": {"key": "ses_1/2", "as": "base64", "bytes": 3, "preview": "a *******"}},
        "artifacts": [{"id": "message", "name": "*******", "bytes": 1}],
    }
    progress = {"call_id": "call_id", "progress": {"current": 1, "total": 2, "label": "current"}}
    told = {"call_id": "call_id", "progress": {"current": 1, "total": 2, "label": "*******"}}
    assert masked("call.progress", progress, secrets) == told
    assert masked("call.progress", told, secrets) is told
    unknown = {"message": [{"outcome": "a message"}]}
    assert masked("new.type", unknown, secrets) == {"message": [{"outcome": "a *******"}]}
