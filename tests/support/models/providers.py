"""What the providers' own wire formats make of a history: mapped by pydantic-ai's models, caught before the network."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx2
import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_core import from_json

Wire = list[tuple[str, str]]
"""Calls and results in the order in which they are sent: `("call", id)`, `("result", id)`, `("other", "")`."""


async def check_providers(messages: Sequence[ModelMessage]) -> None:
    """Every provider gets each call with its result right after it, once: what its API demands."""
    for name, (make, read) in _PROVIDERS.items():
        body = await _sent(make, messages)
        _check_pairs(name, list(read(body)))


async def _sent(make: Callable[[httpx2.AsyncClient], Model], messages: Sequence[ModelMessage]) -> dict[str, Any]:
    sent: list[dict[str, Any]] = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        sent.append(from_json(request.content))
        return httpx2.Response(400, json={"error": {"message": "caught by a test"}})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse), timeout=1_200) as client:
        model = make(client)
        prepared = model.prepare_messages(list(messages), ModelRequestParameters())
        with pytest.raises(ModelHTTPError, match="caught by a test"):
            await model.request(prepared, None, ModelRequestParameters())
    assert len(sent) == 1
    return sent[0]


def _check_pairs(provider: str, wire: Wire) -> None:
    open_ids: list[str] = []
    for kind, call_id in wire:
        if kind == "call":
            open_ids.append(call_id)
        elif kind == "result":
            assert call_id in open_ids, f"{provider}: result {call_id} answers no call: {wire}"
            open_ids.remove(call_id)
        else:
            assert not open_ids, f"{provider}: something stands between {open_ids} and their results: {wire}"
    assert not open_ids, f"{provider}: {open_ids} are not answered: {wire}"


def _read_chat(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]
            continue
        yield "other", ""
        for each in message.get("tool_calls", ()):
            yield "call", each["id"]


def _read_responses(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kinds = {"function_call": "call", "function_call_output": "result"}
    for item in body["input"]:
        kind = kinds.get(item.get("type", ""))
        yield (kind, item["call_id"]) if kind else ("other", "")


def _read_anthropic(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield "call", block["id"]
            elif block["type"] == "tool_result":
                yield "result", block["tool_use_id"]
            else:
                yield "other", ""


def _read_google(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                yield "call", part["functionCall"]["id"]
            elif "functionResponse" in part:
                yield "result", part["functionResponse"]["id"]
            else:
                yield "other", ""


def _openai_chat(client: httpx2.AsyncClient) -> Model:
    return OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="key", http_client=client))


def _openai_responses(client: httpx2.AsyncClient) -> Model:
    return OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(api_key="key", http_client=client))


def _anthropic(client: httpx2.AsyncClient) -> Model:
    return AnthropicModel("claude-opus-4-8", provider=AnthropicProvider(api_key="key", http_client=client))


def _google(client: httpx2.AsyncClient) -> Model:
    return GoogleModel("gemini-3-pro", provider=GoogleProvider(api_key="key", http_client=client))


_PROVIDERS: dict[str, tuple[Callable[[httpx2.AsyncClient], Model], Callable[[dict[str, Any]], Iterator[Any]]]] = {
    "OpenAI chat": (_openai_chat, _read_chat),
    "OpenAI responses": (_openai_responses, _read_responses),
    "Anthropic": (_anthropic, _read_anthropic),
    "Google": (_google, _read_google),
}
