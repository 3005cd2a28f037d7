"""What events hold is typed: each type has its TypedDict, stored ones validate, and OpenAPI has all of them (K6)."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from outlast import Outlast
from outlast.api import create_app
from outlast.events.data.by_type import DATA
from outlast.events.shapes import is_as_told
from outlast.events.types import CONTROL, EventType

OLD = Path(__file__).parents[1] / "data" / "old" / "sqlite.sql.gz"


def stored() -> list[tuple[str, dict[str, Any]]]:
    """The events of a database that an older version left behind."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(gzip.decompress(OLD.read_bytes()).decode())
        return [(type_, json.loads(data)) for type_, data in connection.execute("SELECT type, data FROM events")]


def test_what_older_versions_stored_has_the_types() -> None:
    """K6, E2: every type that there was is among it, and none is refused by its schema or by the check at reading."""
    found = stored()
    later = {each for each in EventType if each.partition(".")[0] in ("request", "schedule")}
    since = {EventType.CALL_SETTLED, *later}
    assert {type_ for type_, _ in found} == {each.value for each in EventType if each not in CONTROL | since}
    for type_, data in found:
        TypeAdapter(DATA[EventType(type_)]).validate_json(json.dumps(data), strict=True)
        assert is_as_told(type_, data), type_


def test_what_a_type_promises_is_checked() -> None:
    assert is_as_told("task.ended", {"task": {"id": "tsk_1", "title": "Dig", "state": "succeeded"}})
    assert not is_as_told("task.ended", {"task": {"id": "tsk_1", "title": "Dig", "state": 1}})
    assert not is_as_told("turn.failed", {"kind": "model_error"})
    assert is_as_told("a.type.of.tomorrow", {})


def test_openapi_has_a_union_of_exactly_these_types(tmp_path: Path) -> None:
    """K6: for the log of a session, the feed, and both as streams."""
    document = create_app(Outlast(Agent(TestModel(), name="agent"), database=tmp_path / "app.db")).openapi()
    schemas = document["components"]["schemas"]
    union = schemas["EventAnswer"]
    assert union["discriminator"]["propertyName"] == "type"
    assert set(union["discriminator"]["mapping"]) == {each.value for each in EventType}
    named = [schemas[each["$ref"].rpartition("/")[2]]["properties"]["type"]["const"] for each in union["oneOf"]]
    assert sorted(named) == sorted(each.value for each in EventType)
    for page in ("EventPage", "FeedPage"):
        assert schemas[page]["properties"]["items"]["items"] == {"$ref": "#/components/schemas/EventAnswer"}
    for path in ("/v1/events", "/v1/sessions/{session_id}/events"):
        content = document["paths"][path]["get"]["responses"]["200"]["content"]
        assert content["text/event-stream"]["itemSchema"] == {"$ref": "#/components/schemas/EventAnswer"}
