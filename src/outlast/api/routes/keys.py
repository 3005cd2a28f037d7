"""API keys of all owners, for admins."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from outlast.api.auth import Admin
from outlast.api.models import Answer, Body, ListOf
from outlast.api.wiring import COMMON, FOUND, Runtime
from outlast.ids import KeyId
from outlast.store.keys import Key

router = APIRouter(prefix="/keys", tags=["keys"], responses=COMMON)


class KeyBody(Body):
    owner_id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    role: Literal["user", "admin"] = "user"
    scope: Literal["read", "write"] = "write"
    expires_in_days: float | None = Field(default=None, gt=0, le=36_500)


class KeyAnswer(Answer):
    id: str
    owner_id: str
    name: str
    role: str
    scope: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, key: Key) -> "KeyAnswer":
        return cls.model_validate(key, from_attributes=True)


class NewKeyAnswer(KeyAnswer):
    key: str = Field(description="Shown now and never again.")


@router.post("", status_code=201)
async def make_key(outlast: Runtime, _: Admin, body: KeyBody) -> NewKeyAnswer:
    """A new key for an owner."""
    expires_in = None if body.expires_in_days is None else timedelta(days=body.expires_in_days)
    key, text = await outlast.keys.make(
        body.owner_id, body.name, role=body.role, scope=body.scope, expires_in=expires_in
    )
    return NewKeyAnswer(**KeyAnswer.of(key).model_dump(), key=text)


@router.get("")
async def list_keys(
    outlast: Runtime, _: Admin, owner_id: Annotated[str | None, Query(max_length=200)] = None
) -> ListOf[KeyAnswer]:
    """All keys, or those of one owner; never their text."""
    return ListOf(items=[KeyAnswer.of(each) for each in await outlast.keys.list(owner_id)])


@router.delete("/{key_id}", status_code=204, responses=FOUND)
async def revoke_key(outlast: Runtime, _: Admin, key_id: str) -> None:
    """From now on it opens nothing."""
    await outlast.keys.revoke(KeyId(key_id))
