"""One-time tokens for browsers: made for somebody who is known, worth one cookie, for ten minutes."""

import secrets
from collections.abc import Callable
from datetime import timedelta

from outlast.api.auth import Principal
from outlast.clock import monotonic
from outlast.errors import StoreUnavailable, Unauthenticated
from outlast.handles.keys import Keys
from outlast.store.repositories.keys import Key

_LASTS_SECONDS = 600.0
_COOKIE_LASTS = timedelta(days=30)
_MOST = 1_000


class Logins:
    """Tokens live in this process only: after a restart, ask for a new one."""

    def __init__(self, keys: Callable[[], Keys]) -> None:
        self._keys = keys
        self._waiting: dict[str, tuple[Principal, float]] = {}

    @property
    def seconds(self) -> int:
        return int(_COOKIE_LASTS.total_seconds())

    def make(self, principal: Principal) -> str:
        token = secrets.token_urlsafe(32)
        self._forget_old()
        self._waiting[token] = (principal, monotonic() + _LASTS_SECONDS)
        return token

    async def swap(self, token: str) -> tuple[Key, str]:
        """The key for the cookie. A token works once."""
        self._forget_old()
        found = self._waiting.pop(token, None)
        if found is None:
            raise Unauthenticated("The link was used before or is too old: ask for a new one with `outlast open`.")
        principal, _ = found
        keys = self._keys()
        lasts = _COOKIE_LASTS if principal.until is None else min(_COOKIE_LASTS, principal.until - keys.clock.now())
        if lasts <= timedelta():
            raise Unauthenticated("What the link was made with has expired: ask for a new one.")
        try:
            return await keys.make(
                principal.owner_id,
                "browser",
                role=principal.role,
                scope=principal.scope,
                expires_in=lasts,
                made_with=principal.key_id,
            )
        except StoreUnavailable:
            self._waiting[token] = found  # it was not worth anything yet: the browser may try again
            raise

    def _forget_old(self) -> None:
        now = monotonic()
        kept = [(token, each) for token, each in self._waiting.items() if each[1] > now]
        self._waiting = dict(kept[-_MOST:])
