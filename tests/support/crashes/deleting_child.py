"""A child process that deletes a session and kills itself with SIGKILL at a named commit.

A place is as in `tests.support.crashes.crash`.
"""

import signal
from pathlib import Path

from pydantic_ai.messages import ModelRequest, UserPromptPart

from tests.support.crashes import child
from tests.support.crashes.crash import Place
from tests.support.turns.runtime import Runtime

LARGE = "x" * 100_000
"""Too large for a row: it is in the file store."""


def delete_until(folder: Path, place: str, *database: str) -> None:
    """Run a child until it dies at the place."""
    log = folder / "child.log"
    code = child.run("tests.support.crashes.deleting_child", str(folder), place, *database, log=log)
    assert code == -signal.SIGKILL, f"{place} was not reached: {log.read_text()}"


async def main(folder: str, place: str, database: str | None = None) -> None:
    embedded = Runtime(Path(folder) / "outlast.db")
    runtime = embedded if database is None else Runtime(database, files=f"{folder}/files")
    async with runtime(lambda _: "Yes.") as outlast:
        said = [ModelRequest(parts=[UserPromptPart(content=LARGE)])]
        session = await outlast.sessions.create(title="Doomed", external_id="one", history=said)
        await session.ask("Hi")
        await outlast.sessions.create(title="Other", history=said)
        outlast.database.watcher = Place(place).passes_commit
        await outlast.sessions.delete(session.id)
