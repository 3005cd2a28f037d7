"""Swapping a one-time token, which a person gets as a link, for a browser's cookie."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from outlast.api import problems
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller, bearer, cookie_of
from outlast.api.login import Logins
from outlast.api.wiring import COMMON, Runtime
from outlast.wire.forms import Answer, Body

router = APIRouter(tags=["login"], route_class=AdmittedRoute)


class LoginBody(Body):
    token: str = Field(min_length=1, max_length=200)


class LoginAnswer(Answer):
    owner_id: str
    role: str


class LinkAnswer(Answer):
    token: str = Field(description="Works once, within ten minutes: put it behind the # of the server's address.")


@router.post("/login", responses=problems.responses(400, 401, 403, 408, 413, 422, 429, 503))
async def login(request: Request, response: Response, body: LoginBody) -> LoginAnswer:
    """Swap a one-time token for a cookie that scripts of a page cannot read."""
    logins: Logins = request.app.state.logins
    key, text = await logins.swap(body.token)
    response.set_cookie(
        cookie_of(request),
        text,
        max_age=logins.seconds,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return LoginAnswer(owner_id=key.owner_id, role=key.role)


@router.post("/login/links", status_code=201, responses=COMMON)
async def make_link(request: Request, caller: Caller) -> LinkAnswer:
    """A new one-time token for a browser of your own. It and its cookie end with the key that you show now."""
    logins: Logins = request.app.state.logins
    return LinkAnswer(token=logins.make(caller))


@router.post("/logout", status_code=204, responses=COMMON)
async def logout(request: Request, response: Response, outlast: Runtime, caller: Caller) -> None:
    """Forget the browser's cookie, which opens nothing from now on, and end its streams."""
    if caller.key_id is not None and bearer(request) is None:
        await outlast.keys.revoke(caller.key_id)
    response.delete_cookie(cookie_of(request))
