"""How an input reads to the model. What people and tools wrote is data: it cannot speak in the runtime's voice."""

from typing import Any

from pydantic_ai.framing import register_tag, wrap
from pydantic_ai.messages import UserPromptPart
from pydantic_core import to_json

from outlast.calls.within.files import content_type
from outlast.store.database import retry_while_unavailable
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import unpack_object
from outlast.store.repositories.inputs import Input, InputKind
from outlast.values.escape import escape, escape_whole

BACKGROUND = register_tag("background_result")
CONTEXT = register_tag("attached_context")
FILES = register_tag("attached_files")
NOTICE = register_tag("runtime_notice")

CONTINUE = "Continue from where you stopped."


def render(given: Input) -> UserPromptPart:
    """One input as one part of a user-role message."""
    return UserPromptPart(content=_text(given), timestamp=given.created_at)


async def render_whole(files: FileStore, given: Input) -> UserPromptPart:
    """The same with the files that belong to it, as the model gets them."""
    part, stored = render(given), files_of(given)
    if stored:
        found = await retry_while_unavailable(lambda: unpack_object(files, {"content": stored}))
        part.content = [_text(given), *content_type().validate_python(found["content"])]
    return part


def files_of(given: Input) -> list[Any]:
    """What of its content is no text, as it is stored."""
    return [each for each in given.body.get("content", ()) if not _is_word(each)]


def notice(text: str) -> UserPromptPart:
    return UserPromptPart(content=wrap(NOTICE, text))


def _text(given: Input) -> str:
    match given.kind:
        case InputKind.MESSAGE:
            return "\n\n".join([escape_whole(given.text), *_attachments(given)])
        case InputKind.WAKE:
            words = [each for each in given.body.get("content", ()) if _is_word(each)]
            return wrap(BACKGROUND, escape_whole("\n".join([given.text, *words])), task_id=given.task_id)
        case InputKind.SCHEDULE:
            schedule = given.body.get("schedule", {})
            if schedule.get("monitor"):
                return wrap(BACKGROUND, escape_whole(given.text), task_id=given.task_id)
            notice = wrap(NOTICE, escape_whole(schedule.get("notice") or "A schedule is due:"))
            return f"{notice}\n\n{escape_whole(given.text)}"
        case InputKind.SETTLEMENT | InputKind.REQUEST:
            return wrap(NOTICE, escape_whole(given.text))


def _attachments(given: Input) -> list[str]:
    blocks: list[str] = []
    context = given.body.get("context")
    if context is not None:
        blocks.append(wrap(CONTEXT, escape_whole(context["content"]), url=context.get("url")))
    files = given.body.get("files")
    if files:
        listed = [{key: each[key] for key in ("id", "name", "media_type", "bytes")} for each in files]
        blocks.append(wrap(FILES, escape(to_json(listed).decode())))
    return blocks


def _is_word(stored: Any) -> bool:
    return isinstance(stored, str)
