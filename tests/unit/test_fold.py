"""Folding deltas: bounded, repeatable, and cut exactly for a reader who has part of it."""

from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from outlast.events.event import Event
from outlast.events.fold import cut, fold
from outlast.ids import SessionId

AT = datetime(2026, 1, 1, tzinfo=UTC)


def delta(number: int, part: str, offset: int, text: str, **more: Any) -> Event:
    return Event(SessionId("ses_1"), number, "part.delta", AT, {"part": part, "offset": offset, "text": text, **more})


def test_a_fold_takes_the_last_number_and_remembers_the_first() -> None:
    (folded,) = fold([delta(4, "1.1.0", 0, "The "), delta(5, "1.1.0", 4, "river"), delta(6, "1.1.0", 9, ".")])
    assert folded.event.number == 6
    assert folded.replaces == [4, 5, 6]
    assert folded.event.data["text"] == "The river."
    assert folded.event.data["first"] == 4
    assert folded.event.data["offset"] == 0


def test_a_reader_inside_gets_only_the_rest() -> None:
    """P4: whatever the reader's position, what it has and what it gets is the whole."""
    (folded,) = fold([delta(4, "1.1.0", 0, "The "), delta(5, "1.1.0", 4, "river"), delta(6, "1.1.0", 9, ".")])
    rest = {after: cut(folded.event, after).data for after in (0, 3, 4, 5)}
    assert {after: (data["offset"], data["text"]) for after, data in rest.items()} == {
        0: (0, "The river."),
        3: (0, "The river."),
        4: (4, "river."),
        5: (9, "."),
    }


def test_a_text_is_not_folded_across_what_stands_between_its_deltas() -> None:
    """P4: whoever has read up to the event in between still gets the text that stood before it."""
    one = [delta(1, "a", 0, "w"), delta(2, "a", 1, "x"), delta(4, "a", 2, "y"), delta(5, "a", 3, "z")]
    other = [delta(3, "b", 0, "1")]
    folded = list(fold([*one[:2], *other, *one[2:]]))
    assert [(each.event.number, each.event.data["text"]) for each in folded] == [(2, "wx"), (5, "yz")]


def test_a_single_delta_is_left_alone() -> None:
    assert list(fold([delta(1, "a", 0, "x")])) == []


def test_a_fold_of_folds_remembers_every_number() -> None:
    (first,) = fold([delta(1, "a", 0, "xx"), delta(2, "a", 2, "y")])
    (again,) = fold([first.event, delta(3, "a", 3, "z")])
    assert again.event.data["first"] == 1
    assert [cut(again.event, after).data["text"] for after in (0, 1, 2)] == ["xxyz", "yz", "z"]


def test_long_parts_become_several_events_that_fit_a_row() -> None:
    """DESIGN 4: no row over 256 KiB, also for letters of four bytes and texts that JSON escapes."""
    for letter in ("x", "\N{WATER WAVE}", "\x01"):
        text = letter * 5_000
        folded = list(fold(delta(n + 1, "a", n * 5_000, text) for n in range(40)))
        assert all(len(to_json(each.event.data)) <= 256 * 1024 for each in folded)
        assert len(folded) > 1


def test_many_small_deltas_have_a_bounded_number_of_marks() -> None:
    folded = [each.event for each in fold(delta(n + 1, "a", n, "x") for n in range(2_000))]
    again = [each.event for each in fold(folded)]
    assert all(len(each.data["marks"]) <= 512 for each in [*folded, *again])
    assert "".join(each.data["text"] for each in folded) == "x" * 2_000


def test_other_events_are_not_cut() -> None:
    event = Event(SessionId("ses_1"), 3, "turn.started", AT, {"attempt": 1})
    assert cut(event, 2) is event
