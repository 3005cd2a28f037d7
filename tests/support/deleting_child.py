"""A child process that deletes a session and kills itself with SIGKILL at a named commit.

`python -m tests.support.deleting_child FOLDER PLACE [DATABASE]`, where a place is as in `tests.support.crash`.
"""

import asyncio
import sys
from pathlib import Path

from pydantic_ai.messages import ModelRequest, UserPromptPart

from tests.support.crash import Place
from tests.support.runtime import Runtime

LARGE = "x" * 100_000
"""Too large for a row: it is in the file store."""


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


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
