"""A session's row, locked until the commit."""

from typing import TYPE_CHECKING, Any

from outlast.ids import OwnerId, SessionId, TurnId


class LockedSession:
    """Read its columns as attributes; set them through `set`: they are written once, at the end of the transaction."""

    id: SessionId
    owner_id: OwnerId
    parent_id: SessionId | None
    agent: str
    model: str | None
    title: str | None
    metadata: str
    """As JSON."""
    budget_seconds: float | None
    turn_id: TurnId | None
    """The active one."""
    is_held: bool
    woken_turns: int
    first_event: int
    last_event: int
    last_message: int
    last_input: int
    external_id: str | None
    is_archived: bool
    answered_event: int
    read_event: int
    interrupted_calls: str
    """As JSON."""
    preview: str | None
    permissions: str | None
    """As JSON."""
    is_dry_run: bool
    binding: str | None
    """As JSON."""
    resource: str | None
    is_titled_by_model: bool
    created_at: int
    updated_at: int
    deleted_at: int | None

    def __init__(self, row: dict[Any, Any]) -> None:
        self._row = row
        self.changes: dict[str, Any] = {}

    if not TYPE_CHECKING:  # for a type checker, what is not named above is not there

        def __getattr__(self, name: str) -> Any:
            try:
                return self._row[name]
            except KeyError:
                raise AttributeError(name) from None

    @property
    def is_constrained(self) -> bool:
        """Whether anything may constrain its calls: False only without constraints of its own and without ancestors."""
        own = (self.parent_id, self.permissions, self.binding)
        return bool(self.is_dry_run) or any(each is not None for each in own)

    def set(self, **values: Any) -> None:
        self._row.update(values)
        self.changes.update(values)

    def next(self, counter: str, by: int = 1) -> int:
        """The next number of a counter column of this session."""
        value = self._row[counter] + by
        self.set(**{counter: value})
        return value
