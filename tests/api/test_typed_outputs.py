"""Agents with a typed output, over every door: an object in this process, JSON everywhere else (B1, D1, K1, K2, K3)."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Annotated, Any, Literal

import pytest
from httpx2 import AsyncClient
from pydantic import BaseModel, ConfigDict, Field, Json, PlainSerializer, computed_field, model_validator
from pydantic_ai import Agent, NativeOutput, PromptedOutput, TextOutput, ToolOutput
from pydantic_ai.profiles import ModelProfile
from pydantic_core import from_json, to_json
from rich.console import Console
from typing_extensions import TypedDict

from outlast import Outcome, Session
from outlast.cli.terminal.screen import PlainScreen
from outlast.cli.terminal.session_view import SessionView
from outlast.cli.whole_output import with_output
from outlast.client.session import Session as RemoteSession
from outlast.errors import NotFound
from outlast.testing import ScriptedModel, call, text
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, events_of


class Report(BaseModel):
    city: str
    day: date = Field(alias="on")


class Worked(BaseModel):
    note: str


class Broke(BaseModel):
    note: str


@dataclass
class Place:
    city: str
    heights: list[Decimal]


class Row(TypedDict):
    city: str
    count: int


class Node(BaseModel):
    name: str
    inner: "list[Node]"


class Sum(BaseModel):
    """Tells more than it takes."""

    model_config = ConfigDict(extra="forbid")
    parts: list[int]

    @computed_field
    @property
    def total(self) -> int:
        return sum(self.parts)


class Open(Sum):
    """Takes what it tells, as something else."""

    model_config = ConfigDict(extra="allow")


class Renamed(BaseModel):
    """Is asked for by one name and told by another; read by either, it would be another object."""

    count: int = Field(default=0, validation_alias="given", serialization_alias="told")
    inner: list[Sum] = []


class Packed(BaseModel):
    rows: Json[list[int]]


class Share(BaseModel):
    parts: list[int]

    @computed_field
    @property
    def mean(self) -> float:
        return sum(self.parts) / len(self.parts)


class Loop(BaseModel):
    name: str
    inner: "list[Loop]" = []


class Once(BaseModel):
    """Its validator knows a city only as long as the model's answer is read."""

    city: str

    @model_validator(mode="after")
    def known(self) -> "Once":
        CITIES.pop(self.city)
        return self


class Leaving(BaseModel):
    @computed_field
    @property
    def gone(self) -> int:
        raise SystemExit("gone")


CITIES: dict[str, int] = {}
Hex = Annotated[int, PlainSerializer(hex, return_type=str)]


def by_name(city: str) -> Report:
    return Report(on=date(2026, 1, 2), city=city)


def shout(said: str) -> str:
    return said.upper()


def words(said: str) -> list[str]:
    return said.split()


async def undeclared(city: str):
    return Place(city, [Decimal("1.5")])


def share() -> Share:
    return Share(parts=[])


def loop() -> Loop:
    made = Loop(name="a")
    made.inner.append(made)
    return made


def once(city: str) -> Once:
    return Once.model_construct(city=city)


def summed() -> Renamed:
    return Renamed(given=3, inner=[Sum(parts=[1, 2])])  # pyright: ignore[reportCallIssue]


ON: dict[str, Any] = {"city": "Oslo", "on": "2026-01-02"}
OSLO: dict[str, Any] = {"city": "Oslo", "count": 2}
NODE: dict[str, Any] = {"name": "a", "inner": [{"name": "b", "inner": []}]}
REPORT = Report(on=date(2026, 1, 2), city="Oslo")
SAID = '{"result": {"kind": "Report", "data": {"city": "Oslo", "on": "2026-01-02"}}}'


@dataclass(frozen=True)
class Case:
    """What an agent declares, what its model answers, and what comes of it.

    `as_json`: where it is not the output itself. `shown`: where a reader sees more than that, or nothing.
    """

    declared: Any
    step: Any
    output: Any
    as_json: Any = None
    shown: str | None = None

    @property
    def stored(self) -> Any:
        return self.output if self.as_json is None else self.as_json

    @property
    def read(self) -> str:
        is_text = isinstance(self.stored, str)
        return self.shown if self.shown is not None else self.stored if is_text else to_json(self.stored).decode()


CASES = {
    "text": Case(str, "Hello.", "Hello."),
    "model": Case(Report, call("final_result", **ON), REPORT, ON),
    "dataclass": Case(
        Place,
        call("final_result", city="Oslo", heights=["1.50"]),
        Place("Oslo", [Decimal("1.50")]),
        {"city": "Oslo", "heights": ["1.50"]},
    ),
    "list": Case(list[Report], call("final_result", response=[ON]), [REPORT], [ON]),
    "union": Case(Report | Row, call("final_result_Row", **OSLO), OSLO),
    "two of one shape": Case([Worked, Broke], call("final_result_Broke", note="no"), Broke(note="no"), {"note": "no"}),
    "text or model": Case([str, Report], call("final_result", **ON), REPORT, ON),
    "typed dict": Case(Row, call("final_result", **OSLO), OSLO),
    "nested": Case(Node, call("final_result", **NODE), Node.model_validate(NODE), NODE),
    "native": Case(NativeOutput(Report), to_json(ON, indent=1).decode(), REPORT, ON, to_json(ON, indent=1).decode()),
    "prompted": Case(PromptedOutput([Report, Row]), SAID, REPORT, ON, f"{SAID}\n{to_json(ON).decode()}"),
    "tool": Case(ToolOutput(Report, name="tell"), call("tell", **ON), REPORT, ON),
    "function": Case(by_name, call("final_result", city="Oslo"), REPORT, ON),
    "functions": Case([by_name, Row], call("final_result_by_name", city="Oslo"), REPORT, ON),
    "function that declares nothing": Case(
        undeclared, call("final_result", city="Oslo"), {"city": "Oslo", "heights": ["1.5"]}
    ),
    "text function": Case(TextOutput(words), "one two", ["one", "two"], None, 'one two\n["one","two"]'),
    "changed text": Case(TextOutput(shout), "hello", "HELLO", None, "hello\nHELLO"),
    "words and a model": Case(
        [str, Report], [text("Here."), call("final_result", **ON)], REPORT, ON, f"Here.\n{to_json(ON).decode()}"
    ),
    "number": Case(int, call("final_result", response=0), 0),
    "no": Case(bool, call("final_result", response=False), False),
    "none": Case([Report, None], call("final_result_None", response=None), None, None, ""),
    "literal": Case(Literal["yes", "no"], call("final_result", response="yes"), "yes"),
    "decimal": Case(Decimal, call("final_result", response="1.50"), Decimal("1.50"), "1.50"),
    "own serialiser": Case(list[Hex], call("final_result", response=[255]), ["0xff"]),
    "more than it takes": Case(
        Sum, call("final_result", parts=[1, 2]), Sum(parts=[1, 2]), {"parts": [1, 2], "total": 3}
    ),
    "takes anything": Case(
        Open,
        call("final_result", parts=[1], more=2),
        Open.model_validate({"parts": [1], "more": 2}),
        {"parts": [1], "more": 2, "total": 1},
    ),
    "two names": Case(summed, call("final_result"), summed(), {"told": 3, "inner": [{"parts": [1, 2], "total": 3}]}),
    "two names in one of several": Case(
        [summed, Sum],
        call("final_result_summed"),
        summed(),
        {"told": 3, "inner": [{"parts": [1, 2], "total": 3}]},
    ),
    "JSON in JSON": Case(
        Packed, call("final_result", rows="[1]"), Packed.model_validate({"rows": "[1]"}), {"rows": [1]}
    ),
    "a part that cannot be computed": Case(share, call("final_result"), Share(parts=[]), {"parts": []}),
    "wants to leave": Case(Leaving, call("final_result"), Leaving(), {}),
    "holds itself": Case(loop, call("final_result"), "name='a' inner=[Loop(name='a', inner=[...])]"),
    "read only once": Case(once, call("final_result", city="Oslo"), {"city": "Oslo"}),
    "not a number": Case(list[float], call("final_result", response=["NaN"]), [None]),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def agent_of(case: Case) -> Agent[Any, Any]:
    model = ScriptedModel([case.step], profile=ModelProfile(supports_json_schema_output=True))
    return Agent(model, output_type=case.declared, name="agent")


def is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


async def test_a_typed_output_over_every_door(runtime: Runtime, case: Case) -> None:
    """B1, D1, K1, K2, K3: as an object of its type for the program that has the agent, also after a restart."""
    async with serving(runtime(agent=agent_of(case))) as server, client_of(server) as client:
        there = await client.sessions.create()
        outcome = await there.ask("report", wait=10)
        assert (outcome.state, outcome.error) == ("completed", None)
        assert is_same(outcome.output, case.stored)
        assert outcome == await there.result(wait=0) == await there.turn(str(outcome.turn_id)).outcome()
        http = await server.client("ada")
        await check_http(http, there.id, case)
        await check_ai_sdk(http, there.id, case)
        imported = await client.sessions.import_(await there.export())
        assert (await http.get(f"/v1/sessions/{imported.id}/messages")).status_code == 200
        assert await shown(there) == case.read
        here = await server.outlast.owned_by("ada").get(there.id)
        assert await shown(await server.outlast.owned_by("ada", as_json=True).get(there.id)) == case.read
        assert is_same((await outcome_of(here)).output, case.output)
    async with runtime(agent=agent_of(case)) as outlast:
        assert is_same((await outcome_of(await outlast.owned_by("ada").get(there.id))).output, case.output)


async def check_http(http: AsyncClient, session_id: str, case: Case) -> None:
    answer = await http.get(f"/v1/sessions/{session_id}/result")
    assert (answer.status_code, answer.json()["output"]) == (200, case.stored)
    for path in ("events", "messages", "export", "inbox"):
        assert (await http.get(f"/v1/sessions/{session_id}/{path}?follow=false")).status_code == 200, path


async def check_ai_sdk(http: AsyncClient, session_id: str, case: Case) -> None:
    """In the stream and in the stored messages alike."""
    is_told = case.stored is not None and not isinstance(case.stored, str)
    kept = (await http.get(f"/api/chat/{session_id}/messages")).json()
    parts: list[Any] = [part for message in kept["items"] for part in message["parts"]]
    told = [part["data"]["output"] for part in parts if part["type"] == "data-output"]
    assert told == ([case.stored] if is_told else [])


async def outcome_of(session: Session) -> Outcome:
    outcome = await session.result()
    assert outcome is not None
    return outcome


async def shown(session: Session | RemoteSession) -> str:
    """What `chat` and `send --wait` print on stdout."""
    out = StringIO()
    with PlainScreen(Console(file=out, width=200), notes=Console(file=StringIO())) as screen:
        view = SessionView(screen, watched=session.id)
        async with session.events(follow=False) as stream:
            async for event in stream:
                view.show(await with_output(session, event))
    return out.getvalue().rstrip("\n")


async def test_a_stream_of_the_ai_sdk_tells_the_output(runtime: Runtime) -> None:
    """K3"""
    case = CASES["model"]
    async with serving(runtime(agent=agent_of(case))) as server:
        http = await server.client("ada")
        said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "report"}]}
        streamed = await http.post("/api/chat", json={"id": "page", "messages": [said], "trigger": "submit-message"})
        lines = [line.removeprefix("data: ") for line in streamed.text.splitlines() if line.startswith("data: {")]
        [output] = [each["data"] for each in map(from_json, lines) if each["type"] == "data-output"]
        assert output == {"output": ON}


LARGE: dict[str, Any] = {
    "a part of it": ["long " * 20_000, "short"],
    "all of it": list(range(60_000)),
    "like a reference": [{"$file": {"bytes": 1, "preview": "x"}}],
}


@pytest.mark.parametrize("rows", LARGE.values(), ids=LARGE)
async def test_an_output_that_does_not_fit_a_row_is_whole_for_clients_and_on_stdout(
    runtime: Runtime, rows: list[Any]
) -> None:
    """B1, D1, K1: where it is kept is nobody's business."""
    case = Case(list[Any], call("final_result", response=rows), rows)
    async with serving(runtime(agent=agent_of(case))) as server, client_of(server) as client:
        session = await client.sessions.create()
        assert (await session.ask("report", wait=10)).output == rows
        here = await server.outlast.owned_by("ada").get(session.id)
        assert (await outcome_of(here)).output == rows
        assert from_json(await shown(session)) == rows
        assert from_json(await shown(await server.outlast.owned_by("ada", as_json=True).get(session.id))) == rows
        kept = await (await server.client("ada")).get(f"/api/chat/{session.id}/messages")
        assert '"key"' not in kept.text


async def test_an_output_of_which_a_part_is_gone_is_told_by_its_beginning(runtime: Runtime) -> None:
    """K1: rather than not at all, and without where it was kept."""
    case = Case(list[str], call("final_result", response=["long " * 20_000, "short"]), None)
    async with runtime(agent=agent_of(case)) as outlast:
        session = await outlast.sessions.create()
        await session.ask("report")
        [ended] = [each for each in await events_of(session) if each.type == "turn.completed"]
        assert (await with_output(_Gone(), ended)).data["output"] == ["long " * 80 + "… (100,000 bytes)", "short"]


class _Gone:
    def turn(self, turn_id: str, /) -> "_Gone":
        return self

    async def outcome(self) -> Outcome:
        raise NotFound("There is no such turn.", id="trn_1")


async def test_a_type_that_changed_gives_what_is_stored(runtime: Runtime) -> None:
    """B1: a session outlives the code that made it."""
    async with runtime(agent=agent_of(CASES["model"])) as outlast:
        session = await outlast.sessions.create()
        await session.ask("report")
    async with runtime(agent=agent_of(CASES["number"])) as outlast:
        assert (await outcome_of(await outlast.sessions.get(session.id))).output == ON
