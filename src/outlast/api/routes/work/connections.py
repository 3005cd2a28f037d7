"""Connections: the caller's own credentials for providers. No answer has a value."""

from fastapi import APIRouter

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Admin
from outlast.api.wiring import COMMON, DECIDED, FOUND, OwnConnections, Runtime
from outlast.wire.connection import ConnectionAnswer, ConnectionBody, RekeyedAnswer
from outlast.wire.forms import ListOf

router = APIRouter(prefix="/connections", tags=["connections"], responses=COMMON, route_class=AdmittedRoute)


@router.get("")
async def list_connections(connections: OwnConnections) -> ListOf[ConnectionAnswer]:
    """Your connections by name; never their values."""
    return ListOf(items=[ConnectionAnswer.of(each) for each in await connections.list()])


@router.put("/{provider}", responses=DECIDED)
async def set_connection(connections: OwnConnections, provider: str, body: ConnectionBody) -> ConnectionAnswer:
    """Keep your credential for a provider, or a new one in the place of the old."""
    return ConnectionAnswer.of(await connections.set(provider, body.value))


@router.get("/{provider}", responses=FOUND)
async def get_connection(connections: OwnConnections, provider: str) -> ConnectionAnswer:
    """Whether it is there and can be read; never its value."""
    return ConnectionAnswer.of(await connections.get(provider))


@router.delete("/{provider}", status_code=204, responses=FOUND)
async def remove_connection(connections: OwnConnections, provider: str) -> None:
    """From now on no tool is given it; what runs with it goes on."""
    await connections.remove(provider)


@router.post("/rekey", responses=DECIDED)
async def rekey_connections(outlast: Runtime, _: Admin) -> RekeyedAnswer:
    """Encrypt the connections of all owners with the first key of this server's settings. Safe to repeat."""
    return RekeyedAnswer.of(await outlast.rekey_connections())
