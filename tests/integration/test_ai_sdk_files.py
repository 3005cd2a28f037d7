"""Files of stock AI SDK pages on their way to a provider."""

import base64
from typing import Any

import httpx2
import pytest
from fastapi import Request
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_core import from_json, to_json

from tests.integration.test_ai_sdk import run_node
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))


class Provider:
    """Answers every chat with the same words, and keeps what it was sent."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(from_json(request.content))
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
        deltas: list[tuple[dict[str, str], str | None]] = [
            ({"role": "assistant", "content": "A river."}, None),
            ({}, "stop"),
        ]
        chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in deltas]
        lines = [b"data: " + to_json(each) for each in chunks]
        return httpx2.Response(
            200, content=b"\n\n".join([*lines, b"data: [DONE]", b""]), headers={"Content-Type": "text/event-stream"}
        )


async def token_is_name(request: Request) -> str | None:
    return request.headers.get("authorization", "").removeprefix("Bearer ") or None


@pytest.mark.parametrize("version", ["5", "6", "7"])
async def test_an_image_of_a_stock_page_reaches_the_provider_as_an_image(runtime: Runtime, version: str) -> None:
    """K3, D12: and it is listed with the session's files."""
    provider = Provider()
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(provider.answer)) as http:
        model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none", http_client=http))
        outlast = runtime(agent=Agent(model, name="agent"))
        async with serving(outlast, authenticate=token_is_name) as server:
            sent = base64.b64encode(PNG).decode()
            await run_node("scenarios.mjs", version, server.url, "picture", sent)
            [session] = await server.outlast.owned_by(f"owner-{version}").list()
            [kept] = await session.files.list()
            assert (kept.name, kept.media_type, kept.bytes) == ("rhine.png", "image/png", len(PNG))
    assert f'"image_url":{{"url":"data:image/png;base64,{sent}"}}' in to_json(provider.asked[0]).decode()
