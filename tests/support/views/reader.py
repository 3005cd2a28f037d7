"""What a page does that follows a session: it takes a view, adds the events that come after it, and has the later view.

The console has the same in TypeScript. Here it holds the server's view to the events, and makes the fixtures of both.
"""

from collections.abc import Iterable
from typing import Any

from outlast.events.event import Event
from outlast.events.views import blocks
from outlast.events.views.turn_fold import TYPES, TurnFold, kept_of, new_turn, settled

View = dict[str, Any]


def empty() -> View:
    return {"as_of": 0, "turns": [], "inbox": [], "tasks": []}


class ViewReader:
    """Takes a session's events in order; those that are in the view already are passed over."""

    def __init__(self, view: View) -> None:
        self._as_of: int = view["as_of"]
        self._folds = {each["id"]: self._fold(each) for each in view["turns"]}
        self._inbox = {each["input_id"]: each for each in view["inbox"]}
        self._tasks = {each["id"]: each for each in view["tasks"]}

    @property
    def view(self) -> View:
        turns = [fold.turn for fold in self._folds.values()]
        return {
            "as_of": self._as_of,
            "turns": turns,
            "inbox": [*self._inbox.values()],
            "tasks": [*self._tasks.values()],
        }

    def add(self, event: Event) -> None:
        if event.number is None or event.number <= self._as_of:
            return
        self._as_of = event.number
        self._input(event)
        if event.type.startswith("task."):
            task = event.data["task"]
            self._tasks[task["id"]] = task
        if event.type == "turn.queued" and event.turn_id is not None:
            self._begin(event.turn_id, event.data.get("regenerates"))
        if event.type in TYPES and event.turn_id in self._folds:
            self._folds[event.turn_id].add(event)
        elif event.type == "call.settled":
            self._settle_kept(event)

    def add_all(self, events: Iterable[Event]) -> View:
        for event in events:
            self.add(event)
        return self.view

    def _begin(self, turn_id: str, regenerates: str | None) -> None:
        """A turn that answers anew stands in the place of the one before it, which is no longer shown."""
        turn = new_turn(turn_id)
        replaced = self._folds.pop(regenerates or "", None)
        if replaced is not None:
            turn["kept"] = kept_of(replaced.turn)
        self._folds[turn_id] = self._fold(turn)

    def _settle_kept(self, event: Event) -> None:
        """Of a turn that another one stands for."""
        for fold in self._folds.values():
            for block in fold.turn["kept"]:
                if block.get("call_id") == event.data["call_id"]:
                    block["settled"] = settled(event)

    def _input(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "input.accepted":
                self._inbox[data["input_id"]] = {
                    "input_id": data["input_id"],
                    "kind": data["kind"],
                    "mode": data.get("mode"),
                    "text": data["text"],
                    "cut": None,
                    "key": data.get("key"),
                    "task_ids": blocks.task_ids(event),
                    "files": data.get("files") or [],
                    "by": data.get("by"),
                    "place": None,
                    "created_at": event.at,
                }
            case "input.edited" if data["input_id"] in self._inbox:
                self._inbox[data["input_id"]]["text"] = data["text"]
            case "input.delivered" | "input.removed":
                self._inbox.pop(data["input_id"], None)
            case _:
                return
        said = [each for each in self._inbox.values() if each["kind"] == "message"]
        for place, each in enumerate(said, 1):
            each["place"] = place

    def _fold(self, turn: View) -> TurnFold:
        return TurnFold(turn["id"], show=blocks.previewed, known=turn)
