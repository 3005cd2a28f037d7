"""What operators see: logs, metrics, traces, stalls (I2, A11, P8)."""

import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from prometheus_client.parser import text_string_to_metric_families
from pydantic_ai import Tool
from pydantic_ai.exceptions import ModelHTTPError
from structlog.testing import capture_logs

from outlast import hints
from outlast.agents import failure
from outlast.calls import outcomes
from outlast.ids import TurnId
from outlast.observe import logs
from outlast.observe.plain import plain
from outlast.observe.stalls import watching_for_stalls
from outlast.testing import call
from outlast.values.secrets import Secrets
from tests.support.apps.obedient import obedient, survey_tool
from tests.support.logs.spans import recorded
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted

RULES = Path(__file__).parents[2] / "deploy" / "alerts.yml"


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """What the process logs, as machines read it."""
    stream = io.StringIO()
    logs.configure(is_json=True, stream=stream)
    yield stream
    structlog.reset_defaults()


def numbers(page: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (each.name, tuple(each.labels.values())): each.value
        for family in text_string_to_metric_families(page)
        for each in family.samples
    }


async def test_metrics_count_what_was_committed(runtime: Runtime) -> None:
    """I2: turns, calls, tasks, tokens and requests; open work as the database has it."""
    here = Checkpoint()
    async with serving(runtime(obedient(here), tools=[survey_tool(here)])) as server:
        ada, root = await server.client(), await server.client("root", role="admin")
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        await ada.post(f"{session}/messages", json={"text": "survey"})
        await ada.get(f"{session}/result", params={"wait": 10})
        page = await root.get("/metrics")
        assert page.status_code == 200
        seen = numbers(page.text)
        assert seen["outlast_turns_ended_total", ("completed",)] == 1
        assert seen["outlast_tasks_open", ("running",)] == 1
        assert seen["outlast_calls_ended_total", ("parked", "survey")] == 1
        assert seen["outlast_http_requests_total", ("POST", "/v1/sessions/{session_id}/messages", "202")] == 1
        assert seen["outlast_http_requests_total", ("GET", "/v1/sessions/{session_id}/result", "200")] == 1
        assert seen["outlast_tokens_total", ("input",)] > 0
        assert (await ada.get("/metrics")).status_code == 403
        here.open()


async def test_every_alert_asks_for_a_metric_that_exists(runtime: Runtime) -> None:
    """I2: the alert rules are true to the metrics."""
    async with serving(runtime()) as server:
        root = await server.client("root", role="admin")
        page = (await root.get("/metrics")).text
    asked = set(re.findall(r"\boutlast_[a-z_]+\b", RULES.read_text()))
    known = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    suffixes = ("", "_total", "_bucket", "_sum", "_count")
    assert asked
    assert asked <= {f"{name.removesuffix('_total')}{suffix}" for name in known for suffix in suffixes}


async def test_a_failing_listener_harms_nothing(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    """P8: observers are listeners; the one that fails is alone with it, and does not fill the log."""
    outlast = runtime(["Hello."])

    def fail(events: Any) -> None:
        raise RuntimeError("broken observer")

    outlast.listen(fail)
    async with outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("hi")).text == "Hello."
        for number in range(10):
            await session.update(title=str(number))
    assert capsys.readouterr().err.count("a listener failed") == 5


async def test_spans_lead_from_the_request_to_the_tool(runtime: Runtime) -> None:
    """I2: one trace from the client's own span over request and turn to the tool, though the turn runs apart."""
    exporter = recorded()

    async def measure() -> str:
        return "12 metres"

    model = scripted(call("measure"), "It is 12 metres.")
    async with serving(runtime(model, tools=[Tool(measure)])) as server:
        ada = await server.client()
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        trace_id = "0af7651916cd43dd8448eb211c80319c"
        parent = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
        await ada.post(f"{session}/messages", json={"text": "measure"}, headers=parent)
        await ada.get(f"{session}/result", params={"wait": 10})
    spans = {each.name: each for each in exporter.get_finished_spans() if ids_of(each)[0] == trace_id}
    request, turn, tool = (
        spans["POST /v1/sessions/{session_id}/messages"],
        spans["turn agent"],
        spans["tool measure"],
    )
    assert turn.parent is not None
    assert f"{turn.parent.span_id:016x}" == ids_of(request)[1]
    assert tool.attributes is not None
    assert tool.attributes["gen_ai.tool.name"] == "measure"


def ids_of(span: ReadableSpan) -> tuple[str, str]:
    assert span.context is not None
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


async def test_a_stall_is_told_with_the_tool_that_caused_it(runtime: Runtime) -> None:
    """I2: event-loop stalls are logged with the tool's name."""

    async def blocking() -> str:
        time.sleep(0.5)  # noqa: ASYNC251 - what authors do by mistake
        return "done"

    async with runtime(scripted(call("blocking"), "Done."), tools=[Tool(blocking)]) as outlast:
        session = await outlast.sessions.create()
        with capture_logs() as seen, watching_for_stalls(longest=0.1):
            await session.ask("go")
    told = [each for each in seen if each["event"].startswith("the event loop stands still")]
    assert [each["tool"] for each in told] == ["blocking"]
    assert "time.sleep(0.5)" in told[0]["where"]


async def test_log_lines_keep_secrets_and_name_the_turn(runtime: Runtime, log_lines: io.StringIO) -> None:
    """A11, G6, I2: structured, with ids, secrets masked, long values cut, the whole chain of an error."""

    async def leak(api_key: str) -> str:
        structlog.get_logger("mine").info("calling", api_key=api_key, nested={"password": "hunter22"}, text="x" * 500)
        raise RuntimeError("token=abcdef123")

    tool = Tool(leak, metadata=hints(budget=None))
    outlast = runtime(scripted(call("leak", api_key="abcdef123"), "Sorry."), tools=[tool])
    async with serving(outlast, log_requests=True) as server:
        ada = await server.client()
        session_id = (await ada.post("/v1/sessions", json={})).json()["id"]
        await ada.post(f"/v1/sessions/{session_id}/messages", json={"text": "go"})
        await ada.get(f"/v1/sessions/{session_id}/result", params={"wait": 10})
    assert "abcdef123" not in log_lines.getvalue()
    assert "hunter22" not in log_lines.getvalue()
    lines = [json.loads(each) for each in log_lines.getvalue().splitlines()]
    called = next(each for each in lines if each["event"] == "calling")
    assert called["session_id"] == session_id
    assert called["turn_id"].startswith("trn_")
    assert len(called["text"]) < 300
    request = next(each for each in lines if each["event"] == "request" and "messages" in each["route"])
    assert (request["session_id"], request["status"]) == (session_id, 202)
    assert any("RuntimeError" in each.get("exception", each.get("chain", "")) for each in lines)


def test_a_person_reads_an_exception_on_lines_of_its_own() -> None:
    """I2, K1: with its last line beside what failed; a machine gets the same in one JSON object."""
    secrets, out = Secrets(), io.StringIO()
    secrets.add("hunter2!!")
    logs.configure(is_json=False, stream=out)
    try:
        outcomes.internal_error("dig", ValueError("the dam\x1b[2J is broken: hunter2!!"), secrets)
        failure.describe(ModelHTTPError(429, "some-model", {"message": "too much"}), TurnId("trn_1"), secrets)
    finally:
        structlog.reset_defaults()
    first, *rest = plain(out.getvalue()).splitlines()
    assert "tool failed" in first
    assert "ValueError: the dam␛[2J is broken: *********" in first
    assert any(line == "ValueError: the dam␛[2J is broken: *********" for line in rest)
    [provider] = [line for line in rest if "provider" in line]
    assert rest[-1] == provider, "nothing in our own frames explains it"
    assert "429" in provider
