"""What constrains the tools of a session: permissions, and the resource that it is bound to."""

from datetime import datetime

from pydantic import ConfigDict, Field, JsonValue

from outlast.wire.forms import Answer, Body

_RULES = "such as `shell(command~='^git ')`, `pay(amount<=100)` or `mcp_*`"


class PermissionLists(Body):
    """Which tools may be called. Deny wins over allow; an allow list means only those."""

    allow: list[str] | None = Field(default=None, max_length=200, description=f"Rules, {_RULES}; null: every tool.")
    deny: list[str] = Field(default_factory=list[str], max_length=200, description=f"Rules, {_RULES}.")


class Permissions(PermissionLists):
    """Which tools may be called. Deny wins over allow; an allow list means only those."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"allow": None, "deny": ["shell", "pay(amount>100)"]}]})

    within: list[PermissionLists] | None = Field(
        default=None, max_length=100, description="Lists each of which must allow a call too; null: as they were."
    )


class AlwaysRule(Answer):
    """A rule that a person added: calls that it is about need no approval in this session."""

    id: str
    rule: str
    by: str
    at: datetime


class PermissionsAnswer(Answer):
    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list[str])
    always: list[AlwaysRule] = Field(
        default_factory=list[AlwaysRule], description="Rules by which calls need no approval in this session."
    )
    within: list[PermissionLists] = Field(
        default_factory=list[PermissionLists],
        description="Lists each of which must allow a call too: of the sessions above the one that this is a copy of.",
    )


class Binding(Body):
    """The resource that a session is about. An owner has at most one session that was made for it."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={"examples": [{"kind": "invoice", "id": "4711", "defaults": {"invoice_id": "4711"}}]},
    )

    kind: str = Field(description="What it is, such as invoice.")
    id: str = Field(description="Which one.")
    defaults: dict[str, JsonValue] = Field(
        default_factory=dict[str, JsonValue], description="Arguments of tools that name the resource, with its values."
    )
    waives_prerequisites: bool = Field(
        default=False, description="Tools run also where others that they require were not called before."
    )
