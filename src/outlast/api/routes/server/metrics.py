"""Numbers for Prometheus; for admins, since they tell about all owners."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Admin
from outlast.api.wiring import COMMON
from outlast.observe.metrics import Metrics

router = APIRouter(tags=["health"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request, _: Admin) -> Response:
    """Counters, gauges and histograms in Prometheus' text format; scrape with an admin's key as bearer token."""
    numbers: Metrics = request.app.state.metrics
    return Response(await numbers.page(), headers={"content-type": CONTENT_TYPE_LATEST})
