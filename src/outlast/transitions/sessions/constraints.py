"""What constrains the tools of a session: checked, kept with it, and read along the chain of its ancestors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json

from outlast import ids
from outlast.errors import InvalidInput, NotFound
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.permissions import permissions
from outlast.permissions.permissions import Permissions
from outlast.permissions.rule import parse
from outlast.store.repositories import constraints
from outlast.store.unit import Unit
from outlast.transitions.sessions.profile import MAX_METADATA, check_json, check_name
from outlast.values import row_json

MOST_ALWAYS = 200
_NONE: Mapping[str, Any] = {"allow": None, "deny": [], "always": []}


@dataclass(frozen=True, slots=True)
class Constraints:
    """Of one session, as its owner gave them. Those of its ancestors hold too."""

    permissions: Mapping[str, Any] | None = None
    """`allow` and `deny`: lists of rules. `within`: more such lists, each of which must allow a call too."""
    is_dry_run: bool = False
    binding: Mapping[str, Any] | None = None
    """`kind` and `id` of a resource, and `defaults` for arguments."""

    def check(self) -> None:
        """Raises `InvalidInput` that names the fault."""
        if self.permissions is not None:
            for each in (self.permissions, *(self.permissions.get("within") or ())):
                permissions.read(allow=each["allow"], deny=each["deny"])
        if self.binding is not None:
            check_name(self.binding["kind"], "kind of the resource")
            check_name(self.binding["id"], "id of the resource")
            if len(check_json(self.binding["defaults"], "defaults of the binding")) > MAX_METADATA:
                raise InvalidInput(f"The defaults of a binding have at most {MAX_METADATA} bytes as JSON.")

    @property
    def resource(self) -> str | None:
        """What an owner has one session of."""
        return None if self.binding is None else to_json([self.binding["kind"], self.binding["id"]]).decode()


def change(unit: Unit, session_id: SessionId, new: Constraints, *, owner_id: str, names: Collection[str]) -> None:
    """Set those of the names that are really new: `permissions`, `is_dry_run`. The next call is judged by them."""
    session = unit.lock(session_id, owner_id=owner_id)
    told: dict[str, Any] = {}
    if "permissions" in names:
        stored = replaced(session.permissions, new.permissions)
        if stored != session.permissions:
            session.set(permissions=stored)
            told["permissions"] = row_json.read_object(stored) if stored else dict(_NONE)
    if "is_dry_run" in names and new.is_dry_run != bool(session.is_dry_run):
        session.set(is_dry_run=new.is_dry_run)
        told["is_dry_run"] = new.is_dry_run
    if told:
        unit.append(session_id, [Draft(EventType.SESSION_CHANGED, told)])


def read(stored: Mapping[str, Any]) -> Sequence[Permissions]:
    """As they are judged: all of them hold. Where they cannot be read, nothing is allowed."""
    try:
        lists = (stored, *stored.get("within", ()))
        return [permissions.read(allow=each["allow"], deny=each["deny"]) for each in lists]
    except (InvalidInput, LookupError, TypeError):
        return [permissions.NOTHING]


def replaced(stored: str | None, given: Mapping[str, Any] | None) -> str | None:
    """New lists in the place of the old; what was added for always stays, and those within unless they are given."""
    lists = given or _NONE
    kept = {**(row_json.read_object(stored) if stored else _NONE), "allow": lists["allow"], "deny": lists["deny"]}
    within = lists.get("within")
    if within:
        kept["within"] = within
    elif within is not None:
        kept.pop("within", None)
    return None if kept == _NONE else row_json.write(kept)


@dataclass(frozen=True, slots=True)
class Chain:
    """What holds in a session: its own constraints, and those of all its ancestors."""

    permissions: Sequence[Permissions]
    is_dry_run: bool
    binding: Mapping[str, Any] | None
    """Its own, or that of the nearest ancestor that has one."""
    own: Mapping[str, Any] | None = None
    """The permissions of the session itself, as they are stored."""

    def is_always_approved(self, tool: str, arguments: Any) -> bool:
        """Whether a person has said so of such calls in this very session."""
        return is_always_approved(self.own, tool, arguments)

    def refusal(self, tool: str, arguments: Any) -> str | None:
        """Why a call is not allowed, for the model; None when it is."""
        return permissions.refusal(self.permissions, tool, arguments)

    def sure_refusal(self, tool: str, arguments: Any) -> str | None:
        """The same before the arguments are validated: only what cannot be allowed, for the call is judged again."""
        return permissions.sure_refusal(self.permissions, tool, arguments)

    def offers(self, tool: str) -> bool:
        return permissions.is_offered(self.permissions, tool)

    def denies_all(self, tool: str) -> bool:
        """Whether one of them denies it by name. Of the runtime's own tools only that counts, no list that allows."""
        return any(each.denies_all(tool) for each in self.permissions)


FREE = Chain((), is_dry_run=False, binding=None)
"""Nothing is constrained."""


def chain_of(connection: sa.Connection, session_id: SessionId) -> Chain:
    rows = constraints.chain(connection, session_id)
    return Chain(
        [lists for each in rows if each.permissions is not None for lists in read(each.permissions)],
        any(each.is_dry_run for each in rows),
        next((each.binding for each in rows if each.binding is not None), None),
        rows[0].permissions if rows else None,
    )


def is_always_approved(given: Mapping[str, Any] | None, tool: str, arguments: Any) -> bool:
    """Whether a person has said of such calls that they need no approval in this session."""
    return any(parse(each["rule"]).surely_applies(tool, arguments) for each in (given or _NONE)["always"])


def is_about(rule: str, tool: str, arguments: Any) -> bool:
    return parse(rule).surely_applies(tool, arguments)


def add_always(unit: Unit, session_id: SessionId, rule: str, *, by: str, owner_id: str) -> str:
    """Calls that the rule is about need no approval in this session from the commit on. Gives the rule's id."""
    rule = rule.strip()
    parse(rule)
    session = unit.lock(session_id, owner_id=owner_id)
    kept = dict(row_json.read_object(session.permissions)) if session.permissions else dict(_NONE)
    if len(kept["always"]) >= MOST_ALWAYS:
        raise InvalidInput(f"A session has at most {MOST_ALWAYS} such rules: withdraw one first.")
    permissions.check_patterns(parse(each) for each in [*(str(each["rule"]) for each in kept["always"]), rule])
    rule_id = ids.rule_id()
    added = {"id": rule_id, "rule": rule, "by": by, "at": unit.now}
    _keep(unit, session_id, {**kept, "always": [*kept["always"], added]})
    return rule_id


def withdraw_always(unit: Unit, session_id: SessionId, rule_id: str, *, owner_id: str) -> None:
    """Such calls need an approval again; those that run go on."""
    session = unit.lock(session_id, owner_id=owner_id)
    kept = dict(row_json.read_object(session.permissions)) if session.permissions else dict(_NONE)
    left = [each for each in kept["always"] if each["id"] != rule_id]
    if len(left) == len(kept["always"]):
        raise NotFound("There is no such rule.", id=rule_id)
    _keep(unit, session_id, {**kept, "always": left})


def _keep(unit: Unit, session_id: SessionId, kept: Mapping[str, Any]) -> None:
    unit.lock(session_id).set(permissions=None if kept == _NONE else row_json.write(kept))
    unit.append(session_id, [Draft(EventType.SESSION_CHANGED, {"permissions": kept})])
