"""What a session was when the server was last asked: its attributes, read without a request."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from outlast.client.connection import Connection, path
from outlast.tool_hints import Unset
from outlast.wire.constraints import Binding, PermissionsAnswer
from outlast.wire.session import CountsAnswer, InterruptedCall, LastTurnAnswer, SessionAnswer, TitleFrom, budget_of


class SeenSession:
    """The attributes of a session as of the last look, of which `seen` has all."""

    def __init__(self, connection: Connection, seen: SessionAnswer) -> None:
        self.id = seen.id
        self.external_id = seen.external_id
        self.created_at = seen.created_at
        self.seen = seen
        self._connection = connection
        self._path = path("sessions", seen.id)

    @property
    def agent(self) -> str:
        """The agent whose turns it has."""
        return self.seen.agent

    @property
    def title(self) -> str | None:
        """As a person called it, else the first words of its first message: `title_from` says which."""
        return self.seen.title

    @property
    def title_from(self) -> TitleFrom | None:
        """`person`, or `message`; None while there is no title."""
        return self.seen.title_from

    @property
    def parent_id(self) -> str | None:
        """The session that it works for, if it is a sub-session."""
        return self.seen.parent_id

    @property
    def preview(self) -> str | None:
        """The first words of its first message: they tell sessions apart that have no title."""
        return self.seen.preview

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.seen.metadata

    @property
    def model(self) -> str | None:
        return self.seen.model

    @property
    def state(self) -> Literal["idle", "queued", "running", "held"]:
        return self.seen.state

    @property
    def is_held(self) -> bool:
        """Whether nothing starts a turn until a person sends or resumes; a turn that is asked to stop may still run."""
        return self.seen.is_held

    @property
    def budget(self) -> timedelta | Unset | None:
        """How long its calls may take before they are parked, where it has a budget of its own."""
        return budget_of(self.seen.budget_seconds)

    @property
    def interrupted_calls(self) -> Sequence[InterruptedCall]:
        """The calls whose effect nobody knows and nobody has settled. See `settle_call`."""
        return self.seen.interrupted_calls

    @property
    def no_worker_for(self) -> str | None:
        """The agent, when its turn waits because no living worker has it."""
        return self.seen.no_worker_for

    @property
    def turn_id(self) -> str | None:
        """The turn that is not over."""
        return self.seen.turn_id

    @property
    def is_archived(self) -> bool:
        return self.seen.is_archived

    @property
    def is_unread(self) -> bool:
        return self.seen.is_unread

    @property
    def read_to(self) -> int:
        """The last event that somebody has seen, as `update(read_to=...)` said."""
        return self.seen.read_to

    @property
    def last_turn(self) -> LastTurnAnswer | None:
        """How the last turn ended; None if none has."""
        return self.seen.last_turn

    @property
    def counts(self) -> CountsAnswer:
        """How many tasks are open, how many of them wait for somebody, and how many messages wait."""
        return self.seen.counts

    @property
    def last_event(self) -> int:
        return self.seen.last_event

    @property
    def updated_at(self) -> datetime:
        return self.seen.updated_at

    @property
    def permissions(self) -> PermissionsAnswer:
        """Which tools its model may call: `allow` and `deny`, and the rules that people added for `always`."""
        return self.seen.permissions

    @property
    def is_dry_run(self) -> bool:
        return self.seen.is_dry_run

    @property
    def binding(self) -> Binding | None:
        """The resource that it is about."""
        return self.seen.binding
