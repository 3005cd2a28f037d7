"""Constraints of a session between how programs give and see them, and how they are kept."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from outlast.errors import InvalidInput
from outlast.store.repositories.constraints import ConstraintsRow
from outlast.store.repositories.sessions import SessionRow
from outlast.transitions.sessions.constraints import Constraints
from outlast.wire.constraints import Binding, PermissionLists, Permissions, PermissionsAnswer


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


def of_chain(chain: Sequence[ConstraintsRow]) -> Constraints:
    """What a copy of the first session gets, which has no ancestors: all that holds in that one now, theirs too.

    Not what a person added for always to it.
    """
    own, *above = [permissions_of(each) for each in chain]
    others = [lists for each in (own, *above) for lists in each.within]
    others += [PermissionLists(allow=each.allow, deny=each.deny) for each in above]
    limiting = [each.model_dump() for each in others if each != PermissionLists()]
    within = [each for at, each in enumerate(limiting) if each not in limiting[:at]]
    lists = {"allow": own.allow, "deny": own.deny, **({"within": within} if within else {})}
    binding = next((found for each in chain if (found := binding_of(each)) is not None), None)
    return Constraints(lists, any(each.is_dry_run for each in chain), None if binding is None else binding.model_dump())


def permissions_of(
    row: SessionRow | ConstraintsRow, shown: Callable[[Any], Any] = lambda value: value
) -> PermissionsAnswer:
    """What is kept; where that cannot be read nothing is allowed, and so it is shown."""
    stored = row.permissions
    try:
        if stored is not None and "allow" not in stored:
            return PermissionsAnswer(allow=[])
        return PermissionsAnswer.model_validate(shown(stored or {}))
    except ValidationError:
        return PermissionsAnswer(allow=[])


def binding_of(row: SessionRow | ConstraintsRow, shown: Callable[[Any], Any] = lambda value: value) -> Binding | None:
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
