"""What a session was when it was looked at last: its attributes, read without a query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from outlast.handles.one_session import constrained
from outlast.handles.services.services import Services
from outlast.ids import TurnId
from outlast.store.repositories.sessions import SessionRow
from outlast.tool_hints import Unset
from outlast.transitions.sessions import preview
from outlast.wire.constraints import Binding, PermissionsAnswer
from outlast.wire.session import CountsAnswer, InterruptedCall, LastTurnAnswer, TitleFrom

SessionState = Literal["idle", "queued", "running", "held"]


class SeenSession:
    """The attributes of a session as of the last look."""

    def __init__(self, services: Services, row: SessionRow) -> None:
        self.id = row.id
        self.owner_id = row.owner_id
        self.external_id = row.external_id
        self.created_at = row.created_at
        self._services = services
        self._seen = row

    @property
    def agent(self) -> str:
        """The agent whose turns it has."""
        return self._seen.agent

    @property
    def title(self) -> str | None:
        """As a person called it, else the first words of its first message: `title_from` says which."""
        return self._services.shown.value(self._seen.title or preview.title_of(self._seen.preview))

    @property
    def title_from(self) -> TitleFrom | None:
        """`person`, `model` or `message`; None while there is no title."""
        if self._seen.title is not None:
            return "model" if self._seen.is_titled_by_model else "person"
        return None if preview.title_of(self._seen.preview) is None else "message"

    @property
    def parent_id(self) -> str | None:
        """The session that it works for, if it is a sub-session."""
        return self._seen.parent_id

    @property
    def preview(self) -> str | None:
        """The first words of its first message: they tell sessions apart that have no title."""
        return self._services.shown.value(self._seen.preview)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._services.shown.value(self._seen.metadata)

    @property
    def model(self) -> str | None:
        """The model its turns use unless a message names another; None: the agent's own."""
        return self._seen.model

    @property
    def is_archived(self) -> bool:
        return self._seen.is_archived

    @property
    def updated_at(self) -> datetime:
        return self._seen.updated_at

    @property
    def turn_id(self) -> TurnId | None:
        """The turn that is not over."""
        return self._seen.turn_id

    @property
    def state(self) -> SessionState:
        """`queued` or `running` like its turn; `held` when nothing starts until a person sends or resumes."""
        if self._seen.turn_id is not None:
            return "running" if self._seen.turn_state == "running" else "queued"
        return "held" if self._seen.is_held else "idle"

    @property
    def is_held(self) -> bool:
        """Whether nothing starts a turn until a person sends or resumes; a turn that is asked to stop may still run."""
        return self._seen.is_held

    @property
    def no_worker_for(self) -> str | None:
        """The agent, when its turn waits because no living worker has it: it goes on when one is started."""
        return None if self._seen.has_worker else self.agent

    @property
    def interrupted_calls(self) -> Sequence[InterruptedCall]:
        """The calls whose effect nobody knows and nobody has settled. See `settle_call`."""
        return [InterruptedCall.model_validate(each) for each in self._seen.interrupted_calls]

    @property
    def is_unread(self) -> bool:
        """Whether a turn has ended since the last event that `update(read_to=...)` named."""
        return self._seen.answered_event > self._seen.read_event

    @property
    def read_to(self) -> int:
        """The last event that somebody has seen, as `update(read_to=...)` said."""
        return self._seen.read_event

    @property
    def last_turn(self) -> LastTurnAnswer | None:
        """How the last turn ended; None if none has."""
        found = self._seen.last_turn
        if found is None:
            return None
        return LastTurnAnswer.of(replace(found, error=self._services.shown.error(found.error)))

    @property
    def counts(self) -> CountsAnswer:
        """How many tasks are open, how many of them wait for somebody, and how many messages wait."""
        return CountsAnswer.of(self._seen.counts)

    @property
    def permissions(self) -> PermissionsAnswer:
        """Which tools its model may call: `allow` and `deny`, and the rules that people added for `always`."""
        return constrained.permissions_of(self._seen, self._services.shown.value)

    @property
    def is_dry_run(self) -> bool:
        return self._seen.is_dry_run

    @property
    def binding(self) -> Binding | None:
        """The resource that it is about."""
        return constrained.binding_of(self._seen, self._services.shown.value)

    @property
    def last_event(self) -> int:
        return self._seen.last_event

    @property
    def budget(self) -> timedelta | Unset | None:
        """How long its calls may take before they are parked, where it has a budget of its own."""
        return self._seen.budget
