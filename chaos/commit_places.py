"""What else a commit does than its name says, told as places of their own: a worker can be killed there too."""

from collections.abc import Sequence
from typing import Any

from chaos.effects import At
from chaos.plan import Moment
from outlast.ids import InputId, SessionId, TaskId
from outlast.store.repositories import inputs, spawned, tasks
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.stored_task import Task
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.kinds.session import SESSION
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import inbox
from outlast.wire.task_state import TaskState

_SAME = {"approve": "decide", "refuse": "decide", "schedule.fire": "fire", "schedule.fire_queued": "fire"}
"""Commits that are one place."""


class CommitPlaces:
    """A watcher of commits that also tells `at` of places inside them.

    `wake`: the end of a task starts a turn. `withdraw`: the answer of `check_background` takes a wake back.
    `cancel.end`: the end of a task that was asked to cancel. `admit`: a spawned task that has waited gets its place.
    `child.end`: the end of what was given to a sub-session. All happen before the commit, where its work is done.
    """

    def __init__(self, at: At) -> None:
        self._at = at
        self._done: set[str] = set()
        self._watch_wakes()
        self._watch_withdrawals()
        self._watch_ends()
        self._watch_admissions()

    def __call__(self, name: str, moment: Moment) -> None:
        self._at(_SAME.get(name, name), moment)
        for place in sorted(self._done):
            self._at(place, moment)
        if moment == "after":
            self._done.clear()

    def note(self, unit: Unit, place: str) -> None:
        """This commit is at a place, whatever its name. One writer commits one thing after the other."""
        self._done.add(place)

    def _watch_wakes(self) -> None:
        plain = inbox.notify

        def notify(unit: Unit, session_id: SessionId, kind: InputKind, text: str, **options: Any) -> Input:
            session = unit.lock(session_id)
            was_idle = session.turn_id is None
            kept = plain(unit, session_id, kind, text, **options)
            if options.get("task_id") is not None and was_idle and session.turn_id is not None:
                self.note(unit, "wake")
            return kept

        inbox.notify = notify

    def _watch_withdrawals(self) -> None:
        plain = inputs.withdraw_wakes

        def withdraw_wakes(unit: Unit, session_id: SessionId, task_ids: Sequence[TaskId]) -> list[InputId]:
            withdrawn = plain(unit, session_id, task_ids)
            if withdrawn:
                self.note(unit, "withdraw")
            return withdrawn

        inputs.withdraw_wakes = withdraw_wakes

    def _watch_ends(self) -> None:
        plain = task_moves.end

        def end(unit: Unit, task_id: TaskId, target: TaskState, **options: Any) -> Disposition:
            task = tasks.get(unit.connection, task_id)
            moved = plain(unit, task_id, target, **options)
            was_asked = target is TaskState.CANCELED or (task is not None and task.cancel_requested_at is not None)
            if moved is Disposition.MOVED and was_asked:
                self.note(unit, "cancel.end")
            if moved is Disposition.MOVED and task is not None and task.kind == SESSION.name:
                self.note(unit, "child.end")
            return moved

        task_moves.end = end

    def _watch_admissions(self) -> None:
        plain = spawned.admit

        def admit(unit: Unit, task: Task) -> None:
            plain(unit, task)
            if task.created_at < unit.now:
                self.note(unit, "admit")

        spawned.admit = admit
