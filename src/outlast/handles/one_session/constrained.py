"""Constraints of a session between how programs give and see them, and how they are kept."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from outlast.errors import InvalidInput
from outlast.store.repositories.sessions import SessionRow
from outlast.transitions.sessions.constraints import Constraints
from outlast.wire.constraints import Binding, Permissions, PermissionsAnswer


def constrained(
    permissions: Permissions | None = None, *, is_dry_run: bool = False, binding: Binding | None = None
) -> Constraints:
    """Raises `InvalidInput` that names a fault."""
    given = Constraints(
        None if permissions is None else permissions.model_dump(),
        is_dry_run,
        None if binding is None else binding.model_dump(),
    )
    given.check()
    return given


def of_row(row: SessionRow) -> Constraints:
    """What a copy of the session gets: not what a person added for always to that one."""
    permissions, binding = permissions_of(row), binding_of(row)
    lists = {"allow": permissions.allow, "deny": permissions.deny}
    return Constraints(lists, row.is_dry_run, None if binding is None else binding.model_dump())


def permissions_of(row: SessionRow, shown: Callable[[Any], Any] = lambda value: value) -> PermissionsAnswer:
    """What is kept; where that cannot be read nothing is allowed, and so it is shown."""
    try:
        return PermissionsAnswer.model_validate(shown(row.permissions or {}))
    except ValidationError:
        return PermissionsAnswer(allow=[])


def binding_of(row: SessionRow, shown: Callable[[Any], Any] = lambda value: value) -> Binding | None:
    try:
        return None if row.binding is None else Binding.model_validate(shown(row.binding))
    except ValidationError:
        return Binding(kind="unreadable", id="unreadable")


def imported(about: Mapping[str, Any]) -> Constraints:
    """From an exported document, which came from anywhere."""
    try:
        permissions = Permissions.model_validate(about.get("permissions") or {})
        binding = None if about.get("binding") is None else Binding.model_validate(about["binding"])
    except ValidationError as exc:
        raise InvalidInput("The document's session.permissions or session.binding cannot be read.") from exc
    return constrained(permissions, is_dry_run=about.get("is_dry_run") is True, binding=binding)
