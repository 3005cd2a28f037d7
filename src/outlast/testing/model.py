"""The scripted model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfileSpec
from pydantic_ai.settings import ModelSettings

from outlast.testing.playback import Playback
from outlast.testing.request import Request
from outlast.testing.script import Counting, Script, Steps
from outlast.testing.stream import ScriptedStream
from outlast.testing.tokens import input_tokens


class ScriptedModel(Model[None]):
    """A model that answers each request with a step of its script and remembers what it was sent.

    `steps` is a list, or a function (plain or async) from the messages of the request to a step. A list is
    counted by the requests made to this object, or with `by="history"` by the responses in the history the
    request carries: then a new process given the same history plays the same step. By history, an
    interrupted response counts as one, and an error step is met again by each retry, as the failed request
    left no response behind.

    A reply takes the same time, makes the same parts and fails at the same place whether it is streamed
    or not. One model may serve many runs at once; by `"requests"` they share one count.
    """

    # Keeps pydantic-ai from adding its own sentence to the prompts that tests look at.
    _announces_system_voice = False

    def __init__(
        self,
        steps: Steps,
        *,
        by: Counting = "requests",
        model_name: str = "scripted",
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
    ) -> None:
        super().__init__(settings=settings, profile=profile)
        self._script = Script(steps, by=by)
        self._name = model_name
        self.requests: list[Request] = []

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        stream = await self._open(messages, model_settings, model_request_parameters, is_streamed=False)
        async for _ in stream:
            pass
        return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        yield await self._open(messages, model_settings, model_request_parameters, is_streamed=True)

    async def _open(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        *,
        is_streamed: bool,
    ) -> ScriptedStream:
        settings, parameters = self.prepare_request(settings, parameters)
        self.requests.append(
            Request(
                messages=list(messages),
                settings=settings or ModelSettings(),
                parameters=parameters,
                is_streamed=is_streamed,
            )
        )
        reply = await self._script.reply_to(messages)
        playback = Playback(reply.items, model_name=self._name, is_streamed=is_streamed)
        # The first delta is awaited here, so that a failure before it fails the request, not the stream.
        first = await playback.next_delta()
        return ScriptedStream(
            model_request_parameters=parameters,
            name=self._name,
            reply=reply,
            first=first,
            playback=playback,
            input_tokens=input_tokens(messages),
        )

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "scripted"
