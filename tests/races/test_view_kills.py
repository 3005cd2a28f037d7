"""A view of any moment, and the events after it, give the later view: also over a kill, whatever goes on at it."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from outlast import Session
from outlast.engines import sweep
from outlast.events.event import Event
from tests.support.crashes import busy_child, viewing_child
from tests.support.views.compare import comparable
from tests.support.views.reader import ViewReader

POSITIONS = 200

# Starting processes takes its time on a busy machine.
pytestmark = pytest.mark.timeout(300)


async def test_what_comes_after_a_view_gives_the_later_one(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K6, C1: at two hundred positions of a running turn that a SIGKILL broke off once, and after folding its text."""
    monkeypatch.setattr(sweep, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sweep, "GRACE_SECONDS", 0.0)
    viewing_child.run(database_url, tmp_path)
    before = read(tmp_path / "views")
    watch = viewing_child.Watch(tmp_path / "views")
    async with viewing_child.opened(database_url, tmp_path, watch) as outlast:
        [session] = await outlast.sessions.list()
        watch.session = session
        await session.settled()
        last = await session.view()
        assert [(each.state, each.attempt) for each in last.turns] == [("completed", 2)]
        views = read(tmp_path / "views")
        assert len(views) >= POSITIONS
        assert len(before) < len(views)
        wanted = comparable(last)
        for view in views:
            assert comparable(await later(session, view), like=last) == wanted, view["as_of"]


async def test_it_holds_over_kills_while_much_is_open(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K6, C1, B8, D3, A13: one SIGKILL with parked calls, an approval, a question and messages that wait, one with
    wakes that wait."""
    monkeypatch.setattr(sweep, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sweep, "GRACE_SECONDS", 0.0)
    for place in busy_child.PLACES:
        busy_child.run(database_url, tmp_path, place)
    watch = viewing_child.Watch(tmp_path / "views-last")
    async with busy_child.opened(database_url, tmp_path, watch) as outlast:
        [session] = await outlast.sessions.list()
        watch.session = session
        await session.settled()
        last = await session.view(turns=100)
        assert not last.inbox
        assert all(each.is_over for each in await session.tasks())
        wanted = comparable(last)
        views = {place: read(tmp_path / f"views-{place}") for place in (*busy_child.PLACES, "last")}
        for place, is_there in busy_child.PLACES.items():
            assert is_there(views[place][-1]), place
        for view in [each for some in views.values() for each in some]:
            assert comparable(await later(session, view), like=last) == wanted, view["as_of"]


def read(kept: Path) -> list[dict[str, Any]]:
    return [from_json(line) for line in kept.read_bytes().splitlines()]


async def later(session: Session, view: dict[str, Any]) -> dict[str, Any]:
    reader = ViewReader(view)
    async with session.events(after=view["as_of"], follow=False) as stream:
        found: list[Event] = [event async for event in stream]
    return reader.add_all(found)
