"""Numbers for Prometheus, counted from committed events and from what the database holds when it is asked."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from outlast.clock import monotonic
from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.store.repositories.open_work import OpenWork

_MOST_OPEN = 10_000
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)
_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class WorkMetrics:
    """What one process commits and how its event loop fares. `seen` is a listener on commits."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, float] = OrderedDict()
        self.registry = registry = CollectorRegistry()
        self.events = Counter("outlast_events", "Events committed.", ["type"], registry=registry)
        self.turns = Counter("outlast_turns_ended", "Turns that ended, by how.", ["state"], registry=registry)
        self.turn_seconds = Histogram(
            "outlast_turn_seconds", "From a turn's start to its end.", registry=registry, buckets=_SECONDS
        )
        self.calls = Counter("outlast_calls_ended", "Tool calls that ended.", ["tool", "outcome"], registry=registry)
        self.tasks = Counter("outlast_tasks_ended", "Background tasks that ended.", ["state"], registry=registry)
        self.tokens = Counter("outlast_tokens", "Tokens of model requests.", ["kind"], registry=registry)
        self.cost = Counter("outlast_cost_microdollars", "Known cost of model requests.", registry=registry)
        self.stalls = Counter("outlast_loop_stalls", "Times that the event loop stood still.", registry=registry)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Answer whoever asks at this address, until the way to end it, which this gives, is called."""
        server, thread = start_http_server(port, host, self.registry)

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return close

    def seen(self, events: Iterable[Event]) -> None:
        for event in events:
            self.events.labels(event.type).inc()
            match event.type:
                case EventType.TURN_STARTED | EventType.TURN_RESUMED:
                    self._begin(event)
                case EventType.TURN_COMPLETED | EventType.TURN_FAILED | EventType.TURN_STOPPED:
                    self._end(event)
                case EventType.CALL_ENDED:
                    self.calls.labels(event.data["tool"], event.data["outcome"]).inc()
                    self._use(event.data.get("usage", {}))
                case EventType.TASK_ENDED:
                    self.tasks.labels(event.data["task"]["state"]).inc()
                    self._use(event.data["task"].get("usage", {}))
                case EventType.RESPONSE_COMPLETED:
                    self._use(event.data["usage"])
                case _:
                    pass

    def _begin(self, event: Event) -> None:
        if event.turn_id is not None:
            self._begun.setdefault(event.turn_id, monotonic())
            if len(self._begun) > _MOST_OPEN:
                self._begun.popitem(last=False)

    def _end(self, event: Event) -> None:
        self.turns.labels(event.type.removeprefix("turn.")).inc()
        begun = self._begun.pop(event.turn_id or "", None)
        if begun is not None:
            self.turn_seconds.observe(monotonic() - begun)

    def _use(self, usage: dict[str, Any]) -> None:
        if not usage:
            return
        for kind in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            self.tokens.labels(kind.removesuffix("_tokens")).inc(usage.get(kind, 0))
        self.cost.inc(usage.get("cost_microdollars") or 0)


class Metrics(WorkMetrics):
    """Those of a server: its requests too, and what the database holds when it is asked."""

    def __init__(self, open_work: Callable[[], Awaitable[OpenWork]]) -> None:
        super().__init__()
        self._open_work = open_work
        registry = self.registry
        self.requests = Counter(
            "outlast_http_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "outlast_http_request_seconds", "Until the answer begins.", ["route"], registry=registry, buckets=_FAST
        )
        self.open_requests = Gauge(
            "outlast_http_open_requests", "Requests being answered, streams too.", registry=registry
        )
        self.open_turns = Gauge("outlast_turns_open", "Turns that wait or run.", ["state"], registry=registry)
        self.open_tasks = Gauge("outlast_tasks_open", "Tasks that have not ended.", ["state"], registry=registry)
        self.oldest = Gauge("outlast_oldest_queued_turn_seconds", "How long the oldest has waited.", registry=registry)

    async def page(self) -> bytes:
        """Everything, in the text format that Prometheus reads."""
        counts = await self._open_work()
        for gauge, by_state in ((self.open_turns, counts.turns), (self.open_tasks, counts.tasks)):
            gauge.clear()
            for state, count in by_state.items():
                gauge.labels(state).set(count)
        self.oldest.set(counts.oldest_queued_seconds)
        return generate_latest(self.registry)
