"""Whatever happens in a session: a view of any moment, and the events after it, give the later view."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any, cast

import pytest

from outlast.events.event import Event
from tests.support.turns.background import BUDGET
from tests.support.turns.runtime import Runtime
from tests.support.views import busy
from tests.support.views.compare import comparable
from tests.support.views.reader import ViewReader

POSITIONS = 200
DEEDS = 60

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_comes_after_any_view_gives_the_later_one(runtime: Runtime, seed: int) -> None:
    """K6, D3, A6, A13, B8, D10: at two hundred moments, with steering, stops, parked calls, approvals, retries."""
    dice, looker = random.Random(seed), busy.Looker()
    async with runtime(busy.model(dice, looker), tools=busy.tools(dice), budget=BUDGET) as outlast:
        session = looker.session = await outlast.sessions.create()
        person = busy.Person(outlast, session, random.Random(seed))
        deeds = 0
        while deeds < DEEDS or len(looker.views) < POSITIONS:
            deeds += 1
            await person.act()
            for _ in range(3):
                await looker.look()
                await asyncio.sleep(0)
        await person.leave()
        last = await session.view(turns=100)
        wanted = comparable(last)
        assert len(looker.views) >= POSITIONS
        for at in sorted(looker.views):
            found = comparable(ViewReader(looker.views[at]).add_all(await told(session, at)), like=last)
            assert found.keys() == wanted.keys()
            for name in wanted:
                assert not [*differences(found[name], wanted[name])], (seed, at, name)


def differences(found: Any, wanted: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where in them, and what: they are too large to be read whole."""
    if isinstance(found, list) and isinstance(wanted, list):
        found, wanted = dict(enumerate(cast(list[Any], found))), dict(enumerate(cast(list[Any], wanted)))
    if isinstance(found, dict) and isinstance(wanted, dict):
        one, other = cast(dict[Any, Any], found), cast(dict[Any, Any], wanted)
        for name in {**one, **other}:
            yield from differences(one.get(name, ...), other.get(name, ...), f"{where}.{name}")
    elif found != wanted:
        yield where, found, wanted


async def told(session: Any, after: int) -> list[Event]:
    async with session.events(after=after, follow=False) as stream:
        return [event async for event in stream]
