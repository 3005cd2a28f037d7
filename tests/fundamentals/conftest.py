"""What every chapter begins with: `async with start(agent) as outlast`."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Outlast, Settings

Start = Callable[..., Outlast[Any, Any]]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Start:
    """The runtime on a database of this test's own, SQLite and PostgreSQL. To start again is a restart."""

    def begin(agent: Agent[Any, Any], *, deps: Any = None, **settings: Any) -> Outlast[Any, Any]:
        quick: dict[str, Any] = {"stop_grace": timedelta(milliseconds=40), "drain": timedelta(milliseconds=50)}
        given: dict[str, Any] = {"files": str(tmp_path / "files"), **quick, **settings}
        return Outlast(agent, database=database_url, deps=deps, settings=Settings(**given))

    return begin
