"""What a response cost: what the provider says, in dollars, else what its tokens cost by the list of prices.

A price that is not known is said to be unknown, never zero.
"""

import math
from dataclasses import fields
from typing import Any

from pydantic_ai.messages import ModelResponse

from outlast.events.outcome import Usage

_FIELDS = fields(Usage)
_MOST = 10**12


def usage_of(response: ModelResponse) -> dict[str, Any]:
    usage = response.usage
    return {
        "input_tokens": _count(usage.input_tokens),
        "output_tokens": _count(usage.output_tokens),
        "cache_read_tokens": _count(usage.cache_read_tokens),
        "cache_write_tokens": _count(usage.cache_write_tokens),
        "cost_microdollars": _cost(response),
    }


def stored(usage: Usage) -> dict[str, int | None]:
    """As rows and events have it. Not by `asdict`, which copies every value: it is part of most commits of a turn."""
    return {each.name: getattr(usage, each.name) for each in _FIELDS}


def _count(told: Any) -> int:
    """A provider may say anything; columns take so much, and a sum of many."""
    return min(max(0, int(told)), _MOST) if isinstance(told, int | float) and math.isfinite(told) else 0


def _cost(response: ModelResponse) -> int | None:
    told = (response.provider_details or {}).get("cost")
    if isinstance(told, int | float) and math.isfinite(told) and told >= 0:
        return min(round(told * 1_000_000), _MOST)
    if not response.model_name or not response.provider_name:
        return None
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError):
        return None
