"""What a call does, in words for people: its tool's hint `narrate`, made into one line for each phase of the call."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import structlog
from pydantic_ai import ToolDefinition

from outlast.containment import Contained
from outlast.tool_hints import PHASES, Hints, Phase, hints_of
from outlast.values.digest import object_of, preview
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.calls")

LONGEST = 200
_VALUE = 80
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_BY_OUTCOME: Mapping[str, Phase] = {"success": "done", "parked": "running"}


@dataclass(frozen=True, slots=True)
class Narration:
    """The words of one call, made when they are asked for. Registered values are masked before anything is cut."""

    tool: str
    hints: Hints
    args: Any
    mask: Callable[[str], str]

    def of(self, phase: Phase) -> str | None:
        """None for a tool that says nothing; the tool's name where what it says fails or is not one line of words."""
        given = self.hints.narrate
        if given is None or given is True:
            return None
        try:
            with Contained():
                said: Any = self._said(given.get(phase, given.get("running")))
            if not isinstance(said, str) or not said.strip():
                return self.tool
            line = " ".join(self.mask(said).split())
        except Exception as exc:
            log.warning("a narration could not be made", tool=self.tool, phase=phase, error=last_line(exc))
            return self.tool
        return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"

    def of_outcome(self, outcome: str) -> str | None:
        """How the call ended; of one that goes on as a task, what it does."""
        return self.of(_BY_OUTCOME.get(outcome, "failed"))

    @property
    def phases(self) -> dict[str, str]:
        """For a task: the words of each phase."""
        found: dict[str, str | None] = {phase: self.of(phase) for phase in PHASES}
        return {phase: said for phase, said in found.items() if said is not None}

    def _said(self, given: "str | Callable[[Any], Any] | None") -> Any:
        args = object_of(self.args)
        if given is None:
            return self.tool
        if callable(given):
            return given(args)
        values = cast(dict[str, Any], args) if isinstance(args, dict) else {}
        return _PLACE.sub(lambda place: _filled(place, values), given)


def _filled(place: re.Match[str], values: Mapping[str, Any]) -> str:
    if place[1] is None:
        return place[0][0]
    value = values[place[1].strip()]  # an argument that is not there: the tool's name says more than half a sentence
    return preview("" if value is None else value, _VALUE) or ""


def narrated(tool: str, hints: Hints, args: Any, mask: Callable[[Any], Any]) -> dict[str, Any]:
    """What the spec of a task keeps of it; nothing if its tool says nothing."""
    phases = Narration(tool, hints, args, mask).phases
    return {"narration": phases} if phases else {}


def of_call(definition: ToolDefinition | None, tool: str, args: Any, mask: Callable[[Any], Any]) -> Narration:
    return Narration(tool, hints_of(None if definition is None else definition.metadata), args, mask)
