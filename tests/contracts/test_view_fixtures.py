"""The views of the fixtures, which the console's tests read too: each is what its events come to, from anywhere on."""

import json
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from outlast.events.data.by_type import DATA
from outlast.events.types import CONTROL, EventType
from tests.support.views.compare import comparable
from tests.support.views.fixtures import FOLDER, SCENES, Log, events_of, written
from tests.support.views.reader import ViewReader, empty

every = pytest.mark.parametrize("scene", SCENES, ids=[each.__name__ for each in SCENES])


@every
def test_the_files_are_what_the_fold_makes(scene: Callable[[Log], None]) -> None:
    """K6: `python -m tests.support.views.fixtures` writes them anew."""
    assert (FOLDER / f"{scene.__name__}.json").read_text() == written(scene)


@every
def test_a_reader_may_go_on_from_any_event(scene: Callable[[Log], None]) -> None:
    """K6: what it has, with what comes, is the later view; what it is told twice changes nothing."""
    events = events_of(scene)
    whole = comparable(ViewReader(empty()).add_all(events))
    for at in range(len(events)):
        seen = json.loads(json.dumps(ViewReader(empty()).add_all(events[:at]), default=lambda given: given.isoformat()))
        assert comparable(ViewReader(seen).add_all(events[max(0, at - 2) :])) == whole


def test_every_type_of_event_is_there() -> None:
    """K6: with the fields that it promises."""
    told = [event for scene in SCENES for event in events_of(scene)]
    for event in told:
        TypeAdapter(DATA[EventType(event.type)]).validate_python(event.data)
    assert {event.type for event in told} == {each.value for each in EventType if each not in CONTROL}
    assert {each.stem for each in FOLDER.glob("*.json")} == {each.__name__ for each in SCENES}
