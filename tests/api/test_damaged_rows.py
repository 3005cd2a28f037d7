"""Rows that somebody has damaged: what stands there says so, and every page around it is given."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from pydantic_ai import Tool

from outlast import hints
from outlast.store import tables
from outlast.store.unit import Unit
from outlast.testing import call
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

BROKEN = ("", '{"half":', "[" * 300 + "]" * 300, "9" * 5_000)
OF_ANOTHER_SHAPE = ("5", "null", '"x"', "[1]", '{"a":[1]}')
NESTED = {
    tables.tasks.c.artifacts: ['[{"name":5},null]'],
    tables.tasks.c.links: ['{"retry_of":5}'],
    tables.tasks.c.settled: ['{"verdict":"worked","by":5}', '{"verdict":"other","by":"ada","at":"then"}'],
    tables.tasks.c.usage: ['{"requests":"x"}', '{"requests":1}'],
    tables.tasks.c.spec: ['{"agent":5,"parked":5}'],
    tables.tasks.c.request: ['{"id":"req_1","kind":"wish","prompt":5}'],
    tables.tasks.c.progress: ['{"current":"x"}'],
    tables.sessions.c.interrupted_calls: ['[{"call_id":"a","tool":"b","turn_id":"c","at":"then"}]', "[[1]]"],
    tables.inputs.c.body: ['{"files":5}', '{"files":[5],"context":5,"model":5}'],
    tables.events.c.data: [
        '{"task":5}',
        '{"part":5,"text":5,"kind":5}',
        '{"part":"0.0","kind":"call"}',
        '{"part":"0.0","offset":0,"text":"x","first":1}',
        '{"call_id":"a","tool":"b","outcome":"success","part":5}',
        '{"usage":5,"attempt":"x","dropped":[5]}',
    ],
    tables.turns.c.usage: ['{"requests":"x","more":1}'],
    tables.workers.c.agents: ["[5]"],
}
COLUMNS: Sequence[sa.Column[Any]] = (
    *NESTED,
    *(tables.sessions.c.metadata, tables.turns.c.error, tables.messages.c.body, tables.tasks.c.result),
    *(tables.tasks.c.error, tables.tasks.c.late_outcome, tables.tasks.c.metadata),
)


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    """How rows are read does not depend on the store."""
    return Runtime(tmp_path / "outlast.db")


async def put(server: Served, column: sa.Column[Any], values: dict[tuple[Any, ...], Any] | str) -> None:
    """In every row the same, or to each row its own."""
    table, key = column.table, list(column.table.primary_key.columns)

    def write(unit: Unit) -> None:
        if isinstance(values, str):
            unit.connection.execute(sa.update(table).values({column.name: values}))
            return
        for of_row, value in values.items():
            same = [each == found for each, found in zip(key, of_row, strict=True)]
            unit.connection.execute(sa.update(table).where(*same).values({column.name: value}))

    await server.outlast.database.transaction(write, name="damage")


async def found_in(server: Served, column: sa.Column[Any]) -> dict[tuple[Any, ...], Any]:
    key = list(column.table.primary_key.columns)
    rows = await server.outlast.database.read(lambda connection: connection.execute(sa.select(column, *key)).all())
    return {tuple(of_row): value for value, *of_row in rows}


async def pages_that_fail(client: httpx2.AsyncClient, pages: Sequence[str]) -> list[tuple[str, int]]:
    answers = [(page, (await client.get(page)).status_code) for page in pages]
    return [(page, status) for page, status in answers if status != 200]


@pytest.mark.parametrize("column", COLUMNS, ids=str)
async def test_a_row_of_another_shape_does_not_take_its_page_along(runtime: Runtime, column: sa.Column[Any]) -> None:
    """G3: neither the lists in which it stands nor its session, its result and chat, nor `/readyz`."""

    async def work() -> str:
        await asyncio.sleep(0.03)
        return "worked"

    model = scripted(call("work"), "Done.", "Heard.")
    async with serving(runtime(model, tools=[Tool(work, metadata=hints(budget=0.01))])) as server:
        client = await server.client()
        session = (await client.post("/v1/sessions", json={})).json()["id"]
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "Go."})
        await client.get(f"/v1/sessions/{session}/result", params={"wait": 10, "until": "settled"})
        task = (await client.get("/v1/tasks")).json()["items"][0]["id"]
        of_session = ("", "/messages", "/events", "/result", "/inbox?whole=true", "/export")
        pages = [
            *("/v1/sessions", "/v1/tasks", "/v1/events", "/v1/usage", "/readyz", f"/api/chat/{session}/messages"),
            *(f"/v1/tasks/{task}", f"/v1/tasks/{task}/output"),
            *(f"/v1/sessions/{session}{each}" for each in of_session),
        ]
        sound = await found_in(server, column)
        assert sound, "there is nothing to damage"
        for broken in (*BROKEN, *OF_ANOTHER_SHAPE, *NESTED.get(column, ())):
            await put(server, column, broken)
            assert await pages_that_fail(client, pages) == [], broken[:40]
        await put(server, column, sound)
        assert await pages_that_fail(client, pages) == []


async def test_a_turn_goes_on_beside_damaged_rows(runtime: Runtime) -> None:
    """G3: what was stored before it says nothing, and stops nothing."""
    async with serving(runtime(scripted("Hello.", *["Again."] * 20))) as server:
        client = await server.client()
        session = (await client.post("/v1/sessions", json={})).json()["id"]
        results = f"/v1/sessions/{session}/result"
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "Go."})
        await client.get(results, params={"wait": 10})
        for column in (tables.events.c.data, tables.sessions.c.interrupted_calls, tables.messages.c.body):
            await put(server, column, '{"a":[1]}')
            await client.post(f"/v1/sessions/{session}/messages", json={"text": "Go on."})
            answer = (await client.get(results, params={"wait": 10, "until": "settled"})).json()
            assert (answer["state"], answer["text"]) == ("completed", "Again."), str(column)
