"""Which waiting inputs are due. First in, first out within a mode; interrupts, then steering, then the queue."""

from collections.abc import Sequence

from outlast.store.repositories.inputs import Input, InputKind, Mode

_SAID = (InputKind.MESSAGE, InputKind.SCHEDULE)


def due_at_start(waiting: Sequence[Input]) -> list[Input]:
    """What a new turn begins with: interrupts, then steering; without those the first queued; then wakes.

    What a schedule says waits in the queue as a message does.
    """
    wakes = [each for each in waiting if each.kind not in _SAID]
    said = [each for each in waiting if each.kind is InputKind.MESSAGE]
    now = _with(said, Mode.INTERRUPT) + _with(said, Mode.STEER)
    queued = [each for each in waiting if each.kind in _SAID and each.mode is Mode.QUEUE]
    return (now or queued[:1]) + wakes


def due_at_boundary(waiting: Sequence[Input]) -> list[Input]:
    """What a running turn takes before its next model request, and what keeps it from ending."""
    steering = [each for each in waiting if each.kind is InputKind.MESSAGE and each.mode is Mode.STEER]
    return steering + [each for each in waiting if each.kind not in _SAID]


def _with(said: Sequence[Input], mode: Mode) -> list[Input]:
    return [each for each in said if each.mode is mode]
