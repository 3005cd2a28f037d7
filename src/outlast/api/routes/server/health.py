"""For whoever operates the server: is it alive, can it work."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from outlast.api import problems
from outlast.api.wiring import Runtime

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str


class Readiness(Health):
    workers: int = Field(description="How many were seen alive.")


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health(status="ok")


@router.get("/readyz", responses=problems.responses(503))
async def readyz(outlast: Runtime) -> Readiness:
    """The database takes commits and its files are in place, files are kept, and a worker was seen; else 503."""
    return Readiness(status="ready", workers=await outlast.check())
