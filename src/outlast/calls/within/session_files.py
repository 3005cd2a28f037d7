"""`outlast.files`, within a tool: the files of the session that it runs in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from outlast.calls.call import RunningCall, current_call
from outlast.errors import Conflict, NotFound, NotStarted
from outlast.ids import SessionId
from outlast.store.database import retry_while_unavailable
from outlast.store.files.session_files import SessionFiles
from outlast.store.repositories import files as files_of_sessions
from outlast.store.repositories.files import FileRow
from outlast.store.unit import Unit


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of the session. `id` is the same for the same content."""

    id: str
    name: str
    media_type: str
    bytes: int


class CallFiles:
    """Files go by their names, or by the ids that messages, results and other tools name. For async tools.

    A value goes from one tool to another by its id: one writes it, the model passes the id on, the other reads it.
    """

    async def read(self, name_or_id: str) -> bytes:
        """Raises `NotFound` for what the session does not have."""
        call, kept = _here()
        _, data = await retry_while_unavailable(lambda: kept.read(call.session_id, name_or_id))
        if data is None:
            raise NotFound(f"There is no file {name_or_id[:80]!r} in this session.")
        return data

    async def write(
        self, name: str, data: bytes | str, media_type: str | None = None, *, instead_of: str | None = None
    ) -> str:
        """Keep it under a name, instead of what had that; gives its id. Text is kept as UTF-8.

        `instead_of`: the id of what was read there and is changed; raises `Conflict` if there is something else by
        now. Raises `InvalidInput` for a name that is none, `BodyTooLarge` for what has no room.
        """
        call, kept = _here()
        content = data.encode() if isinstance(data, str) else bytes(data)
        kind = media_type or ("text/plain" if isinstance(data, str) else "application/octet-stream")
        row = await retry_while_unavailable(
            lambda: kept.keep(
                call.session_id,
                call.owner_id,
                call.secrets.mask(name),
                content,
                kind,
                origin="tool",
                made_by=call.call_id,
                replaces=True,
                may_write=partial(_is_the_same, session_id=call.session_id, name=name, instead_of=instead_of),
            )
        )
        return row.id

    async def list(self) -> Sequence[NamedFile]:
        """By name."""
        call, kept = _here()
        return [_named(row) for row in await retry_while_unavailable(lambda: kept.list(call.session_id))]

    async def find(self, name_or_id: str) -> NamedFile | None:
        """What is known of it, without its content."""
        call, kept = _here()
        row = await retry_while_unavailable(lambda: kept.find(call.session_id, name_or_id))
        return None if row is None else _named(row)

    async def delete(self, name: str) -> None:
        """Raises `NotFound`, and `Conflict` for what belongs to a message or a call."""
        call, kept = _here()
        row = await retry_while_unavailable(lambda: kept.find(call.session_id, name))
        if row is None:
            raise NotFound(f"There is no file {name[:80]!r} in this session.")
        await retry_while_unavailable(lambda: kept.delete(call.session_id, row))


files: Final = CallFiles()


def _is_the_same(unit: Unit, session_id: SessionId, name: str, instead_of: str | None) -> None:
    if instead_of is not None:
        row = files_of_sessions.get(unit.connection, session_id, name)
        if row is None or row.id != instead_of:
            raise Conflict(f"{name!r} has become something else since it was read: read it again.")


def _named(row: FileRow) -> NamedFile:
    return NamedFile(row.id, row.name, row.media_type, row.bytes)


def _here() -> tuple[RunningCall, SessionFiles]:
    call = current_call.get()
    if call is None or call.files is None:
        raise NotStarted("Files are there for tools that Outlast runs: this was called outside of one.")
    return call, call.files
