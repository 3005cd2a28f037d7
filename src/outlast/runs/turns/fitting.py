"""Before the agent runs: history that became too long is shortened by a summary of its oldest turns.

Made once, committed under the attempt's fence before the request that is sent with it, and used again by later turns
and attempts. If it cannot be made, the oldest turns are left out of this turn and the turn goes on.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import structlog
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import Model

from outlast.agents import compact, summary
from outlast.agents.messages import history
from outlast.agents.messages.window import Window, begins
from outlast.agents.usage import usage_of
from outlast.containment import as_error
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.store.repositories import summaries
from outlast.store.repositories.spending import of_response
from outlast.store.repositories.summaries import Summary
from outlast.store.unit import Unit
from outlast.values.redact import last_line

if TYPE_CHECKING:
    from outlast.runs.turns.loop import TurnRun

log = structlog.get_logger("outlast.turns")

_KEEP = 1 / 2
"""Of the messages that the model is sent at most, how many stay after a summary: it is not made anew each turn."""
_AIM = 1 / 3
"""Of what fits the model's window, how much."""
_LONGEST = timedelta(minutes=2)
"""How long a turn waits for a summary."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`messages`: so many are sent at most; `characters`: so much fits the window. None: as many as there are."""

    messages: int | None
    characters: int | None


def cut_at(window: Window, own: int, bounds: Bounds, *, is_forced: bool = False) -> int:
    """How many of the oldest entries a summary should stand for; 0: none. Never one of the turn's `own`."""
    said = [each.message for each in window.entries]
    smallest = _smallest(said)
    before = 0 if window.prefix is None else compact.size([window.prefix])
    wanted = 0
    if bounds.messages is not None and (own > bounds.messages or window.left_out):
        wanted = max(1, own - int(bounds.messages * _KEEP))
    if is_forced or (bounds.characters is not None and before + sum(smallest) > bounds.characters):
        aim = int((bounds.characters or sum(smallest)) * _AIM)
        rest = sum(smallest)
        for at, each in enumerate(smallest):
            if rest <= aim:
                break
            rest -= each
            wanted = max(wanted, at + 1)
    if wanted == 0:
        return 0
    places = [at for at in range(1, own + 1) if at == len(said) or begins(said[at - 1], said[at])]
    later = [at for at in places if at >= wanted]
    return later[0] if later else (places[-1] if places else 0)


def _smallest(said: Sequence[ModelMessage]) -> list[int]:
    """The size of each when all results that may be cut are cut."""
    cut = compact.choose(said, most=0).cut
    return [compact.size([each]) for each in compact.apply(said, cut)]


async def fit(run: "TurnRun", model: object, *, bounds: Bounds, is_forced: bool = False) -> bool:
    """Shorten what the run has of history, if it must be; False when nothing was done."""
    window = run.window
    own = min(run.own_from - (window.prefix is not None), len(window.entries))
    cut = cut_at(window, own, bounds, is_forced=is_forced)
    if cut == 0 and not window.left_out:
        return False
    count = cut + window.left_out
    prefix, is_stored = None, False
    if isinstance(model, Model | str) and cut:
        prefix = await _summarised(run, cast(Model[Any] | str, model), bounds, cut)
        is_stored = prefix is not None
    if prefix is None:
        prefix = summary.standing_for(count, None, window.system)
        old: list[ModelMessage] = [each.message for each in window.entries[:cut]]
        run.log.add(EventType.HISTORY_COMPACTED, {**_told(old, prefix, "left_out"), "messages": count})
    gone = cut + (window.prefix is not None)
    window.entries, window.prefix, window.left_out = window.entries[cut:], prefix, 0
    run.messages[:] = [prefix, *run.messages[gone:]]
    run.own_from += 1 - gone
    return is_stored or bool(cut)


def _told(old: Sequence[ModelMessage], prefix: ModelRequest, reason: str) -> dict[str, Any]:
    return {
        "messages": len(old),
        "results_cut": 0,
        "characters_before": compact.size(old),
        "characters_after": compact.size([prefix]),
        "reason": reason,
    }


async def _summarised(run: "TurnRun", model: Model[Any] | str, bounds: Bounds, cut: int) -> ModelRequest | None:
    """None when no summary could be made; the turn goes on without."""
    window = run.window
    old: list[ModelMessage] = [each.message for each in window.entries[:cut]]
    said = old if window.prefix is None else [window.prefix, *old]
    most = summary.MOST if bounds.characters is None else min(summary.MOST, bounds.characters * 2 // 3)
    longest = summary.MOST_SUMMARY if bounds.characters is None else bounds.characters // 4
    try:
        async with asyncio.timeout(min(run.policy.idle_timeout, _LONGEST).total_seconds()):
            told = summary.transcript(old, earlier=window.prefix, most=most)
            # What is stored may hold values that were registered as secrets after it was said.
            response = await summary.ask(model, run.log.secrets.mask(told))
        text = run.log.secrets.mask(summary.text_of(response, most=longest))
        if not text:
            raise ValueError("the model said nothing")
    except Exception as exc:
        log.warning("no summary could be made; the oldest turns are left out", error=last_line(as_error(exc)))
        return None
    used = usage_of(response)
    run.used.add_spent(of_response(used))
    up_to = window.entries[cut - 1].position
    prefix = history.masked(summary.standing_for(up_to, text, window.system), run.log.secrets)
    assert isinstance(prefix, ModelRequest)
    body = await history.encode(run.log.files, run.claim.fence.session_id, prefix)
    shown = {**_told(said, prefix, "summarised"), "summary": text[:4_000], "up_to": up_to}

    def keep(unit: Unit) -> None:
        fence = run.claim.fence
        summaries.drop_after(unit, fence.session_id, up_to - 1)
        made = Summary(up_to, body, response.model_name)
        summaries.add(unit, fence.session_id, made, usage=used, turn_id=fence.turn_id)
        unit.append(fence.session_id, [Draft(EventType.HISTORY_COMPACTED, shown, fence.turn_id)])

    await run.log.commit("summary", keep)
    return prefix
