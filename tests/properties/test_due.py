"""What is due, for any inbox: order within a mode, modes before modes, wakes last."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.ids import InputId, SessionId
from outlast.store.repositories.inputs import Input, InputKind, InputState, Mode
from outlast.transitions.turns.due import due_at_boundary, due_at_start

AT = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = st.sampled_from([InputKind.MESSAGE, InputKind.MESSAGE, InputKind.WAKE, InputKind.SETTLEMENT])
MODES = st.sampled_from([Mode.STEER, Mode.QUEUE, Mode.INTERRUPT])


@st.composite
def inboxes(draw: st.DrawFn) -> list[Input]:
    made: list[Input] = []
    for sequence in range(draw(st.integers(0, 12))):
        kind = draw(KINDS)
        mode = draw(MODES) if kind is InputKind.MESSAGE else Mode.STEER
        made.append(
            Input(InputId(f"inp_{sequence}"), SessionId("ses_1"), sequence, kind, mode, InputState.WAITING, "x", AT)
        )
    return made


def rank(each: Input) -> tuple[int, int]:
    order = {Mode.INTERRUPT: 0, Mode.STEER: 1, Mode.QUEUE: 2, Mode.REJECT: 9}
    return (3 if each.kind is not InputKind.MESSAGE else order[each.mode], each.sequence)


@settings(deadline=None, max_examples=300)
@given(inboxes())
def test_the_order_is_interrupt_steer_queue_and_wakes_last(waiting: list[Input]) -> None:
    """D4: first in, first out within a mode, at the start of a turn and at a boundary."""
    for due in (due_at_start(waiting), due_at_boundary(waiting)):
        assert [rank(each) for each in due] == sorted(rank(each) for each in due)
        assert len({each.id for each in due}) == len(due)
        assert {each.id for each in due} <= {each.id for each in waiting}


@settings(deadline=None, max_examples=300)
@given(inboxes())
def test_a_new_turn_takes_one_of_the_queue_and_only_when_nothing_is_more_urgent(waiting: list[Input]) -> None:
    due = due_at_start(waiting)
    queued = [each for each in due if each.mode is Mode.QUEUE]
    urgent = [each for each in waiting if each.kind is InputKind.MESSAGE and each.mode is not Mode.QUEUE]
    assert len(queued) <= 1
    assert not (queued and urgent)
    assert {each.id for each in urgent} <= {each.id for each in due}
    assert bool(due) == bool(waiting), "whatever waits can start a turn"


@settings(deadline=None, max_examples=300)
@given(inboxes())
def test_a_running_turn_takes_all_steering_and_wakes_and_nothing_else(waiting: list[Input]) -> None:
    """D1: `queue` is for the next turn, `interrupt` for the one after the stop."""
    expected = {each.id for each in waiting if each.kind is not InputKind.MESSAGE or each.mode is Mode.STEER}
    assert {each.id for each in due_at_boundary(waiting)} == expected


@settings(deadline=None, max_examples=200)
@given(inboxes())
def test_turn_after_turn_the_inbox_becomes_empty(waiting: list[Input]) -> None:
    """D1: nothing waits for ever, and the queue keeps its order."""
    taken: list[Input] = []
    while waiting:
        due = due_at_start(waiting)
        assert due
        taken += due
        waiting = [each for each in waiting if each not in due]
    queued = [each.sequence for each in taken if each.mode is Mode.QUEUE]
    assert queued == sorted(queued)
