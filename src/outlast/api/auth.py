"""Who is asking: an API key, a JWT, a browser's cookie, or the program's own `authenticate=`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol, cast

import jwt
from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from jwt import PyJWKClient, PyJWKClientConnectionError, PyJWTError

from outlast.api.limits import Rate
from outlast.api.strangers import Strangers, shown_by
from outlast.containment import Contained
from outlast.errors import Forbidden, InvalidInput, StoreUnavailable, Unauthenticated
from outlast.handles.keys import Keys
from outlast.ids import KeyId
from outlast.values.check import check_characters

_LATEST = datetime.max.replace(tzinfo=UTC).timestamp() - 86_400
_MOST_CHARACTERS = 200
_UNREADABLE = (PyJWTError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""What reading a token may come to: its maker chooses what stands in it, and not all of that is looked at first."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever asks: everything it sees and makes belongs to `owner_id`."""

    owner_id: str
    role: Literal["user", "admin"] = "user"
    scope: Literal["read", "propose", "write"] = "write"
    name: str = ""
    until: datetime | None = None
    """When what the caller showed ends: nothing that is made from it lasts longer. None: it does not end."""
    key_id: KeyId | None = None
    """The key that the caller showed."""

    @property
    def label(self) -> str:
        """How others are told who did something."""
        return self.name or self.owner_id


Authenticate = Callable[[Request], Awaitable[Principal | str | None]]
"""A program's own way: the owner's id, a `Principal`, or None for somebody unknown."""


class Authenticator(Protocol):
    async def __call__(self, request: Request) -> Principal | None:
        """Whoever is named by the request; None when this one cannot tell."""
        ...


def cookie_of(request: Request) -> str:
    """The name of a browser's cookie: browsers send those of a host to all its ports."""
    try:
        port = request.url.port
    except ValueError:  # the `Host` header is the client's own: one without a port that can be is no browser's
        port = None
    return "outlast" if port is None else f"outlast_{port}"


class ByKey:
    """An API key in the `Authorization` header, or in the cookie that a browser got for its one-time token."""

    def __init__(self, keys: Callable[[], Keys]) -> None:
        self._keys = keys

    async def __call__(self, request: Request) -> Principal | None:
        text, is_cookie = bearer(request), False
        if text is None:
            text, is_cookie = request.cookies.get(cookie_of(request)), True
        if text is None or not text.startswith("olk_"):
            return None
        if is_cookie and request.method not in SAFE and not _is_same_site(request):
            raise Forbidden("A page of another origin may not act for you: send an Authorization header instead.")
        key = await self._keys().find(text)
        if key is None:
            return None
        return Principal(key.owner_id, key.role, key.scope, key.name, key.expires_at, key.id)


class ByJwt:
    """A JWT, checked with the keys that the issuer publishes (JWKS). `sub` is the owner."""

    def __init__(self, url: str, *, audience: str | None, issuer: str | None) -> None:
        self._keys = PyJWKClient(url, cache_keys=True, timeout=5)
        self._audience = audience
        self._issuer = issuer

    async def __call__(self, request: Request) -> Principal | None:
        text = bearer(request)
        if text is None or text.count(".") != 2:
            return None
        try:
            claims = await asyncio.to_thread(self._claims, text)
        except PyJWKClientConnectionError as exc:
            raise StoreUnavailable("The issuer's keys cannot be read now: try again.", retry_after=5) from exc
        except _UNREADABLE:
            return None
        role = "admin" if "admin" in _words(claims.get("roles", claims.get("role"))) else "user"
        scopes = _words(claims.get("scope"))
        scope = _scope(scopes)
        sub, name, exp = claims["sub"], claims.get("name"), claims["exp"]
        if not isinstance(sub, str) or not isinstance(exp, int | float):
            return None
        until = datetime.fromtimestamp(min(exp, _LATEST), UTC)
        return Principal(sub, role, scope, name[:_MOST_CHARACTERS] if isinstance(name, str) else "", until)

    def _claims(self, text: str) -> dict[str, Any]:
        key = self._keys.get_signing_key_from_jwt(text)
        required = ["exp", "sub"]
        return jwt.decode(
            text,
            key,
            algorithms=_ALGORITHMS,
            audience=self._audience,
            issuer=self._issuer,
            options={"require": required, "verify_aud": self._audience is not None},
        )


class ByProgram:
    """The program's own hook; what it gives is taken as it is."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    async def __call__(self, request: Request) -> Principal | None:
        with Contained():
            found = await self._authenticate(request)
        return Principal(found) if isinstance(found, str) else found


class Gate:
    """Asks one authenticator after the other; the first that knows the caller wins."""

    def __init__(self, authenticators: Sequence[Authenticator], rate: Rate, strangers: Strangers) -> None:
        self._authenticators = authenticators
        self.rate = rate
        self._strangers = strangers
        self._is_programs = any(isinstance(each, ByProgram) for each in authenticators)

    async def admit(self, request: Request) -> Principal:
        """From its headers alone. Counted once for each time that this is asked."""
        shown = shown_by(request, is_programs=self._is_programs)
        if not self._strangers.knows(shown):
            async with self._strangers.place():
                found = await self._find(request)
            self._strangers.remember(shown)
        else:
            try:
                found = await self._find(request)
            except Unauthenticated:
                self._strangers.forget(shown)
                raise
        self.rate.take(found.owner_id)
        if found.scope == "read" and request.method not in SAFE:
            raise Forbidden("This key may only read.")
        return found

    async def admit_stranger(self, looking: Awaitable[str | None]) -> str:
        """Whoever shows something else than the authenticators know; `looking` gives whose it is, if anybody's."""
        async with self._strangers.place():
            owner_id = await looking
            if owner_id is None:
                raise Unauthenticated("This token does not complete this task.")
        self.rate.take(owner_id)
        return owner_id

    def caller_of(self, request: Request) -> bytes:
        """What tells one caller from another before anybody is asked: strangers of one address are one."""
        shown = shown_by(request, is_programs=self._is_programs)
        if self._strangers.knows(shown):
            return shown
        return b"" if request.client is None else request.client.host.encode()

    async def _find(self, request: Request) -> Principal:
        for each in self._authenticators:
            found = await each(request)
            if found is not None:
                break
        else:
            if bearer(request) is not None:
                raise Unauthenticated("This key is not accepted: it is wrong, expired or revoked.")
            raise Unauthenticated("Send a key: Authorization: Bearer <key>. `outlast keys make` makes one.")
        if not 0 < len(found.owner_id) <= _MOST_CHARACTERS:
            raise InvalidInput(f"The caller's owner id must have 1 to {_MOST_CHARACTERS} characters.")
        check_characters(found.owner_id + found.name, "caller's name")
        return found


async def admitted(
    request: Request, _: Annotated[Any, Security(HTTPBearer(auto_error=False, description="An API key or a JWT."))]
) -> Principal:
    """Whoever was admitted before the body was read, or is now: a program's own routes may ask too."""
    known = getattr(request.state, "principal", None)
    if isinstance(known, Principal):
        return known
    gate: Gate = request.app.state.gate
    principal = await gate.admit(request)
    request.state.principal = principal
    return principal


Caller = Annotated[Principal, Depends(admitted)]


async def _admin(caller: Caller) -> Principal:
    if caller.role != "admin":
        raise Forbidden("Only an admin may do this.")
    return caller


Admin = Annotated[Principal, Depends(_admin)]


def check_decider(caller: Principal) -> None:
    """Raises `Forbidden` for a key that does not speak for a person."""
    if caller.scope != "write":
        raise Forbidden("With this key no approval is decided: that needs one with the scope `write`.")


async def _decider(caller: Caller) -> Principal:
    check_decider(caller)
    return caller


Decider = Annotated[Principal, Depends(_decider)]
"""A person, or a key that speaks for one."""


async def lapsed(keys: Keys, caller: Principal) -> None:
    """Returns when what the caller showed opens nothing any more; never, if that does not end."""
    if caller.key_id is not None:
        await keys.ended(caller.key_id, caller.until)
    elif caller.until is not None:
        await asyncio.sleep(max(0.0, (caller.until - keys.clock.now()).total_seconds()))
    else:
        await asyncio.Event().wait()


def bearer(request: Request) -> str | None:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


def _is_same_site(request: Request) -> bool:
    """Browsers say where a request comes from; one that says nothing is not a browser."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    return origin.split("://", 1)[-1] == request.headers.get("host")


def _scope(scopes: Sequence[str]) -> Literal["read", "propose", "write"]:
    """The widest that a token names; one that names none of them may do everything."""
    named = [each for each in ("write", "propose", "read") if f"outlast:{each}" in scopes]
    return cast(Literal["read", "propose", "write"], named[0]) if named else "write"


def _words(claim: Any) -> list[str]:
    if isinstance(claim, str):
        return claim.split()
    return [str(each) for each in cast(list[object], claim)] if isinstance(claim, list) else []
