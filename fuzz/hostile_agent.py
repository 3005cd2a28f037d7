"""A hostile agent: whatever its tools and its model hand over, everything can be read afterwards.

`python -m fuzz.hostile_agent --cases 2000 --report fuzz/hostile-agent.json`: half of the cases on a SQLite file, half
on PostgreSQL. A case is a session with odd metadata, an odd message, and a turn of odd words, calls, results, errors,
progress, output and files, in the turn and in the background. Beside them runs a sound call that must not notice.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
import structlog

from fuzz import hostile_tools, nasty
from outlast.values import clean
from tests.support.network.server import Served, serving
from tests.support.stores.postgres import running_postgres
from tests.support.turns.runtime import Runtime

_AT_ONCE = 8
_WAIT = 240
_LOOK_EVERY = 0.25
_PATIENCE = _WAIT + 30
"""Of a client: longer than the server lets it wait."""
_PAGES = (
    *("/v1/sessions", "/v1/tasks", "/v1/events", "/v1/usage", "/v1/sessions/{id}", "/v1/sessions/{id}/messages"),
    *("/v1/sessions/{id}/events", "/v1/sessions/{id}/result", "/v1/sessions/{id}/inbox", "/v1/sessions/{id}/export"),
    *("/api/chat/{id}/messages", "/api/chat/{id}/stream"),
)
_VIEWS = (("sessions", "show", "{id}"), ("sessions", "list"), ("ps", "--all"), ("attach", "{id}"))
_SETTINGS: dict[str, Any] = {
    "max_turns_per_owner": 64,
    "max_requests_per_minute": 10**9,
    "max_open_tasks_per_session": 50,
    "public_url": "https://agents.example.org",
}
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
JSON = {"Content-Type": "application/json"}


@dataclass
class Report:
    """What was tried, and everything that went wrong, by the number of its case."""

    cases: Counter[str] = field(default_factory=Counter[str])
    pages: int = 0
    turns: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    tasks: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[int] = field(default_factory=Counter[int])
    failures: list[str] = field(default_factory=list[str])

    def fail(self, what: str) -> None:
        """Told at once: a long run may never come to its end."""
        print(what, file=sys.stderr, flush=True)
        self.failures.append(what)

    def summary(self) -> dict[str, Any]:
        return {
            "cases": dict(self.cases),
            "pages_read": self.pages,
            "turns_by_state": dict(self.turns),
            "calls_by_outcome": dict(self.calls),
            "tasks_by_state": dict(self.tasks),
            "answers_by_status": {str(status): count for status, count in sorted(self.statuses.items())},
            "failures": len(self.failures),
            "first_failures": self.failures[:20],
        }


class Case:
    """One session: made, spoken to, waited for, and read in every way."""

    def __init__(self, client: httpx2.AsyncClient, number: int, report: Report, *, store: str) -> None:
        self._client = client
        self._number = number
        self._report = report
        self._store = store
        self._source = random.Random(f"case {number}")

    async def run(self) -> str | None:
        """Gives the id of its session."""
        self._report.cases[self._store] += 1
        try:
            return await self._live()
        except Exception as exc:
            self._fail(f"{type(exc).__name__}: {exc}")
            return None

    async def _live(self) -> str:
        session = await self._made()
        await self._ask("PATCH", f"/v1/sessions/{session}", profile := self._profile())
        await self._ask("PATCH", f"/v1/sessions/{session}", clean.value(profile))
        await self._ask(
            "POST", f"/v1/sessions/{session}/messages", {"text": nasty.text(self._source), "when_busy": "queue"}
        )
        sent = {"text": f"{nasty.short(self._source)} case {self._number}"}
        answer = await self._ask("POST", f"/v1/sessions/{session}/messages", sent)
        if answer.status_code >= 400:
            sent = {"text": f"case {self._number}"}
            answer = await self._ask("POST", f"/v1/sessions/{session}/messages", sent)
        is_over = asyncio.Event()
        answering = asyncio.create_task(self._answer(session, is_over), name=f"answers of case {self._number}")
        try:
            await self._settled(session)
        finally:
            is_over.set()
            await answering
        for page in _PAGES:
            self._read(page, await self._ask("GET", page.format(id=session)))
        await self._imported(session)
        return session

    async def _made(self) -> str:
        given = {**self._profile(), "external_id": f"{nasty.short(self._source)} {self._number}"}
        made = await self._ask("POST", "/v1/sessions", given)
        if made.status_code >= 400:
            made = await self._ask("POST", "/v1/sessions", {})
        return made.json()["id"]

    def _profile(self) -> dict[str, Any]:
        return {
            "title": nasty.short(self._source),
            "metadata": {nasty.short(self._source): nasty.plain(self._source) for _ in range(2)},
        }

    async def _settled(self, session: str) -> None:
        """The turn is completed; the sound call has worked, and so have all that returned, whatever it was."""
        path = f"/v1/sessions/{session}/result"
        result = (await self._ask("GET", path, params={"wait": _WAIT, "until": "settled"})).json()
        turns = (await self._ask("GET", f"/v1/sessions/{session}/export")).json()["turns"]
        for each in turns:
            may_fail = each["state"] == "failed" and hostile_tools.model_raises(self._number)
            self._report.turns[each["state"]] += 1
            if each["state"] != "completed" and not may_fail:
                self._fail(f"a turn is {each['state']}: {each.get('error')}")
        if not result:
            self._fail("no result")
        await self._check_calls(session)
        await self._check_tasks(session)

    async def _answer(self, session: str, is_over: asyncio.Event) -> None:
        """What its calls ask is answered with odd words, or plainly where those are refused."""
        while not is_over.is_set():
            asking = await self._ask("GET", f"/v1/sessions/{session}/requests")
            self._read("requests", asking)
            for task in asking.json()["items"]:
                given = await self._ask("POST", f"/v1/tasks/{task['id']}/reply", {"value": nasty.text(self._source)})
                if given.status_code >= 400:
                    await self._ask("POST", f"/v1/tasks/{task['id']}/reply", {"value": "yes"})
            await asyncio.sleep(_LOOK_EVERY)

    async def _check_calls(self, session: str) -> None:
        found = await self._ask("GET", f"/v1/sessions/{session}/events", params={"types": "call.started,call.ended"})
        started: dict[str, Any] = {}
        sound = 0
        for event in found.json()["items"]:
            data = event["data"]
            if event["type"] == "call.started":
                started[data["call_id"]] = _arguments(data["args"])
                continue
            self._report.calls[data["outcome"]] += 1
            sound += data["tool"] == "canary" and data["outcome"] == "success"
            given = started.get(data["call_id"], {})
            is_odd = data["tool"].startswith("hand_over") and "number" in given
            if is_odd and data["outcome"] == "failed" and self._has_returned(given["number"], data):
                self._fail(f"a call that returned has failed: {str(data['part'])[:300]}")
        if sound != 1:
            self._fail(f"{sound} sound calls have worked")

    def _has_returned(self, number: int, data: dict[str, Any]) -> bool:
        """Rather than been refused for its arguments."""
        is_refused = "validation" in str(data["part"]).lower()
        return not is_refused and hostile_tools.is_returned(self._number, number)

    async def _check_tasks(self, session: str) -> None:
        found = await self._ask("GET", "/v1/tasks", params={"session": session, "limit": 100})
        for task in found.json()["items"]:
            self._report.tasks[task["state"]] += 1
            number = _arguments(task["args"]).get("number", 0)
            is_call = task["kind"] == "call"  # an operation elsewhere was taken back
            if is_call and task["state"] != "succeeded" and hostile_tools.is_returned(self._number, number):
                self._fail(f"a task that returned is {task['state']}: {task['error']}")
            self._read("task", await self._ask("GET", f"/v1/tasks/{task['id']}"))
            self._read("output", await self._ask("GET", f"/v1/tasks/{task['id']}/output"))

    async def _imported(self, session: str) -> None:
        document = (await self._ask("GET", f"/v1/sessions/{session}/export")).json()
        await self._ask("POST", "/v1/sessions/import", document)
        document["session"]["metadata"] = nasty.plain(self._source)
        document["messages"] = [*document["messages"][:1], nasty.plain(self._source)]
        await self._ask("POST", "/v1/sessions/import", document)

    async def _ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        content = None if body is None else json.dumps(body).replace(f'"{nasty.MANY_DIGITS}"', "9" * 5_000)
        answer = await self._client.request(method, path, content=content, headers=JSON, **options)
        self._report.statuses[answer.status_code] += 1
        if answer.status_code >= 500:
            self._fail(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer

    def _read(self, page: str, answer: httpx2.Response) -> None:
        self._report.pages += 1
        if answer.status_code == 204:
            return
        if answer.status_code != 200:
            self._fail(f"{page} cannot be read: {answer.status_code} {answer.text[:300]}")
            return
        try:
            json.loads(answer.text, parse_constant=_refuse)
        except ValueError as exc:
            self._fail(f"{page} is no JSON: {exc}")

    def _fail(self, what: str) -> None:
        self._report.fail(f"case {self._number} on {self._store}: {what}")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _arguments(args: Any) -> dict[str, Any]:
    try:
        found = json.loads(args) if isinstance(args, str) else args
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


async def run(
    runtime: Runtime, numbers: Sequence[int], report: Report, *, store: str, view_every: int | None = 100
) -> None:
    """The cases of one store, some at a time, each with an owner of its own of eight."""
    room = asyncio.Semaphore(_AT_ONCE)
    async with serving(runtime(agent=hostile_tools.agent(), **_SETTINGS)) as server:
        clients = [await server.client(f"owner {number}") for number in range(_AT_ONCE)]
        for each in clients:
            each.timeout = httpx2.Timeout(_PATIENCE)
            # A server closes a connection that was idle for a while, perhaps just when it is used again.
            each.headers["Connection"] = "close"

        async def one(number: int) -> None:
            async with room:
                case = Case(clients[number % _AT_ONCE], number, report, store=store)
                session = await case.run()
                if session is not None and view_every is not None and number % view_every == 0:
                    has_failed = hostile_tools.model_raises(number)
                    await _view(server, f"owner {number % _AT_ONCE}", session, report, has_failed=has_failed)

        await asyncio.gather(*map(one, numbers))
        if (await clients[0].get("/readyz")).status_code != 200:
            report.fail(f"{store}: the server is not ready any more")


def obeyed(said: str) -> set[str]:
    """What a terminal would act upon: control characters, and what turns the order of characters around."""
    return {
        each for each in said if unicodedata.category(each) == "Cc" or unicodedata.bidirectional(each) in _TURNING
    } - {"\n", "\t"}


async def _view(server: Served, owner: str, session: str, report: Report, *, has_failed: bool) -> None:
    """What the command prints of a session holds nothing that a terminal would obey. A failed turn is told as one."""
    _, key = await server.outlast.keys.make(owner, "view")
    for view in _VIEWS:
        arguments = [each.format(id=session) for each in view]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "outlast", *arguments, "--url", server.url, "--token", key),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        said = out.decode(errors="replace") + err.decode(errors="replace")
        odd = obeyed(said)
        if process.returncode not in ((0, 1) if has_failed and view[0] == "attach" else (0,)) or odd:
            report.fail(f"{' '.join(view)}: exit {process.returncode}, prints {odd}: {said[-300:]!r}")


@contextmanager
def stores(folder: Path) -> Generator[dict[str, Runtime]]:
    with running_postgres() as server, server.new_database(template=server.migrated()) as url:
        yield {"sqlite": Runtime(folder / "fuzz.db"), "postgresql": Runtime(url, files=str(folder / "files"))}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hostile_agent", description=__doc__)
    parser.add_argument("--cases", type=int, default=2_000, help="how many, over both stores (default: 2,000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--report", type=Path, default=None, help="where to keep the totals, as JSON")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began, report = time.monotonic(), Report()
    numbers = range(given.first, given.first + given.cases)
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as both:
        for at, (store, runtime) in enumerate(both.items()):
            asyncio.run(run(runtime, numbers[at::2], report, store=store))
            print(f"{store}: {len(report.failures)} failures so far", flush=True)
    totals = {"first": given.first, **report.summary(), "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps(totals, indent=2))
    if given.report is not None:
        given.report.write_text(json.dumps(totals, indent=2) + "\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
