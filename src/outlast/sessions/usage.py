"""What a response cost: what the provider says, in dollars, else what its tokens cost by the list of prices.

A price that is not known is said to be unknown, never zero.
"""

import math
from dataclasses import fields
from typing import Any

from pydantic_ai.messages import ModelResponse

from outlast.events.outcome import Usage

_FIELDS = fields(Usage)


def usage_of(response: ModelResponse) -> dict[str, Any]:
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_microdollars": _cost(response),
    }


def stored(usage: Usage) -> dict[str, int | None]:
    """As rows and events have it. Not by `asdict`, which copies every value: it is part of most commits of a turn."""
    return {each.name: getattr(usage, each.name) for each in _FIELDS}


def _cost(response: ModelResponse) -> int | None:
    told = (response.provider_details or {}).get("cost")
    if isinstance(told, int | float) and math.isfinite(told) and told >= 0:
        return round(told * 1_000_000)
    if not response.model_name or not response.provider_name:
        return None
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError):
        return None
