"""API keys of all owners, for admins."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Admin
from outlast.api.wiring import COMMON, FOUND, Cursor, Limit, Runtime
from outlast.ids import KeyId
from outlast.wire.forms import ListOf
from outlast.wire.key import KeyAnswer, KeyBody, NewKeyAnswer

router = APIRouter(prefix="/keys", tags=["keys"], responses=COMMON, route_class=AdmittedRoute)


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
    outlast: Runtime,
    _: Admin,
    owner_id: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListOf[KeyAnswer]:
    """All keys, or those of one owner, newest first; never their text."""
    page = await outlast.keys.page(owner_id, limit=limit, before=cursor)
    return ListOf(items=[KeyAnswer.of(each) for each in page.items], next=page.next)


@router.delete("/{key_id}", responses=FOUND)
async def revoke_key(outlast: Runtime, _: Admin, key_id: str) -> KeyAnswer:
    """From now on it opens nothing, nor do the links and cookies that were made with it; open streams end."""
    return KeyAnswer.of(await outlast.keys.revoke(KeyId(key_id)))
