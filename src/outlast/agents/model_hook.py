"""The per-run capability around model requests: a committed response is not asked for again, history is fitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ReinjectSystemPrompt
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters

from outlast.agents import compact
from outlast.agents.messages import history

_AIM = 2 / 3
"""How far below the limit a compaction goes, so that the shortened history stays the same for a while."""


@dataclass
class ModelHook(AbstractCapability[Any]):
    """`window` is in tokens; None means what the model's profile says, and no compaction if it says nothing."""

    window: int | None
    compact_above: float
    tell: Callable[[dict[str, Any]], None]
    committed: ModelResponse | None = None
    is_forced: bool = False
    cut: frozenset[str] = field(default_factory=frozenset[str])
    measure_tools: Callable[[Sequence[ToolDefinition]], None] | None = None
    overhead_of: Callable[[ModelRequestParameters], int] | None = None
    """How many characters of a request are no messages."""

    def is_needed(self, model: object) -> bool:
        """Whether it may have something to do; of a model that is only named, the window is not known yet."""
        has_window = self.window is not None or not isinstance(model, Model) or model.context_window is not None
        return has_window or self.committed is not None or self.is_forced or self.measure_tools is not None

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        stored, self.committed = self.committed, None
        return stored or await handler(request_context)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self.measure_tools is not None:
            self.measure_tools(request_context.model_request_parameters.function_tools)
        window = self.window or request_context.model.context_window
        if window is None and not self.is_forced:
            return request_context
        messages = request_context.messages
        most = int((window or 0) * self.compact_above * compact.CHARACTERS_PER_TOKEN)
        if self.overhead_of is not None and window is not None:
            most = max(most - self.overhead_of(request_context.model_request_parameters), most // 4)
        if self.is_forced:
            self._shorten_refused(messages, most)
            self.is_forced = False
        elif window is not None:
            chosen, is_more = compact.fitted(messages, most=most, aim=int(most * _AIM))
            if is_more and not chosen.cut <= self.cut:
                self._say(messages, chosen, "window")
            self.cut |= chosen.cut
        return replace(request_context, messages=compact.apply(messages, self.cut)) if self.cut else request_context

    def _shorten_refused(self, messages: Sequence[ModelMessage], most: int) -> None:
        total = compact.size(compact.apply(messages, self.cut)) if self.cut else compact.size(messages)
        chosen = compact.choose(messages, most=int(min(most or total, total) // 2 * _AIM))
        if chosen.cut != self.cut:
            self.cut = chosen.cut
            self._say(messages, chosen, "refused_as_too_long")

    def _say(self, messages: Sequence[ModelMessage], chosen: compact.Compaction, reason: str) -> None:
        self.tell(
            {
                "messages": len(messages),
                "results_cut": len(chosen.cut),
                "characters_before": chosen.characters_before,
                "characters_after": chosen.characters_after,
                "reason": reason,
            }
        )


def around_requests(
    hook: ModelHook, model: object, given: Sequence[ModelMessage], *, is_one_of_several: bool = False
) -> list[AbstractCapability[Any]]:
    """What a run needs around its requests, and no more: pydantic-ai passes every event through each capability."""
    needed: list[AbstractCapability[Any]] = [hook] if hook.is_needed(model) else []
    if given and is_one_of_several:
        # The session may have had another agent: its system prompt is not this one's.
        needed.append(ReinjectSystemPrompt(replace_existing=True))
    elif given and not history.has_system_prompt(given):
        # A history from elsewhere comes without the agent's own system prompt.
        needed.append(ReinjectSystemPrompt())
    return needed
