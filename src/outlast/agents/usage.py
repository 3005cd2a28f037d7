"""What a response cost: what the provider says, in dollars, else what its tokens cost by the list of prices.

A price that is not known is said to be unknown, never zero.
"""

from decimal import Decimal
from typing import Any

from pydantic_ai.messages import ModelResponse

from outlast.calls.shared_usage import SharedUsage
from outlast.events.outcome import Usage
from outlast.store.repositories.spending import countable
from outlast.values import clean


def usage_of(response: ModelResponse) -> dict[str, Any]:
    usage = response.usage
    return {
        "input_tokens": countable(usage.input_tokens),
        "output_tokens": countable(usage.output_tokens),
        "cache_read_tokens": countable(usage.cache_read_tokens),
        "cache_write_tokens": countable(usage.cache_write_tokens),
        "cost_microdollars": _cost(response),
    }


def shared(usage: Usage) -> SharedUsage:
    """For another run of a turn that has used this much: its tools, and the agents that they run, go on from there."""
    cost = usage.cost_microdollars
    return SharedUsage(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost=Decimal(cost) / 1_000_000 if cost else None,
    )


def _cost(response: ModelResponse) -> int | None:
    told = (response.provider_details or {}).get("cost")
    if isinstance(told, int | float) and (dollars := clean.number(told)) is not None and dollars >= 0:
        return countable(dollars * 1_000_000)
    known = response.usage.cost
    if known is not None and clean.number(known) is not None and known >= 0:
        return countable(known * 1_000_000)
    if not response.model_name or not response.provider_name:
        return None
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError, ArithmeticError):
        return None
