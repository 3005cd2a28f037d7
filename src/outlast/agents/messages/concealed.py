"""What a model is sent: no file that it does not take, and no registered value, whenever that was registered."""

from dataclasses import replace

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext

from outlast.agents.messages import history
from outlast.agents.messages.sendable import sendable
from outlast.values.secrets import Secrets


class Concealed:
    """One per run. A message is looked through once for each time that values were added."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._version = 0
        self._known: dict[int, tuple[ModelMessage, ModelMessage]] = {}

    def __call__(self, request: ModelRequestContext) -> ModelRequestContext:
        request = sendable(request)
        if self._secrets.is_empty:
            return request
        if self._version != self._secrets.version:
            self._version = self._secrets.version
            self._known.clear()
        messages = [self._masked(each) for each in request.messages]
        is_same = all(one is other for one, other in zip(messages, request.messages, strict=True))
        return request if is_same else replace(request, messages=messages)

    def _masked(self, message: ModelMessage) -> ModelMessage:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, history.masked(message, self._secrets))
        return known[1]
