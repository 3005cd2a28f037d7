"""Who may complete an operation: its owner, a server that knows the server key, or whoever has a token of it."""

import hashlib
import hmac
from dataclasses import dataclass

from fastapi import Request

from outlast.api.admission import Admission, AdmittedRoute
from outlast.api.auth import Gate, bearer
from outlast.errors import NoServerKey, Unauthenticated
from outlast.runtime import Outlast

_TOKEN = "olt_"
_SERVER = "(server key)"
"""Stands for the owner where requests and bytes are counted: ids of owners have no such characters to spare."""


@dataclass(frozen=True, slots=True)
class Completer:
    """`owner_id` None: this one completes whatever there is."""

    owner_id: str | None
    counted_as: str


class CompletionRoute(AdmittedRoute):
    """Its caller is known before anything of the body is read."""

    has_caller = True

    async def let_in(self, admission: Admission, request: Request) -> str:
        completer = request.state.completer = await _completer(request)
        admission.count(request, completer.counted_as)
        return completer.counted_as


async def _completer(request: Request) -> Completer:
    outlast: Outlast = request.app.state.outlast
    gate: Gate = request.app.state.gate
    shown = bearer(request)
    token = request.query_params.get("token") or (shown if shown is not None and shown.startswith(_TOKEN) else None)
    if token is not None:
        owner_id = await gate.admit_stranger(outlast.completions.owner_by(request.path_params["task_id"], token))
        return Completer(owner_id, owner_id)
    key = outlast.settings.server_key
    if key is not None and shown is not None and _is_same(shown, key.get_secret_value()):
        gate.rate.take(_SERVER)
        return Completer(None, _SERVER)
    try:
        owner_id = (await gate.admit(request)).owner_id
    except Unauthenticated:
        if key is None and not (shown or "").startswith("olk_"):
            raise NoServerKey(
                "No server key is set, and no token was sent: set OUTLAST_SERVER_KEY, or use the whole completion URL."
            ) from None
        raise
    return Completer(owner_id, owner_id)


def _is_same(shown: str, key: str) -> bool:
    """In the same time whatever was shown, and before anything is looked up."""
    one, other = (hashlib.sha256(each.encode(errors="replace")).digest() for each in (shown, key))
    return hmac.compare_digest(one, other)
