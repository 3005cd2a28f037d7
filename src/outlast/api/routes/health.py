"""For whoever operates the server: is it alive, can it work."""

from fastapi import APIRouter
from pydantic import BaseModel

from outlast.api import problems
from outlast.api.wiring import Runtime

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health(status="ok")


@router.get("/readyz", responses=problems.responses(503))
async def readyz(outlast: Runtime) -> Health:
    """The database takes commits; 503 while it does not."""
    await outlast.check()
    return Health(status="ready")
