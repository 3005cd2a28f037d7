"""Files of a parked call reach the model as files; where they are kept does not (A2, P2)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic_ai import Tool, ToolReturn
from pydantic_ai.messages import BinaryContent, BinaryImage, DocumentUrl, ImageUrl, ModelMessage, UserPromptPart

from outlast import Outlast, Session, hints
from outlast.testing import ScriptedModel, call, last_user_text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, events_of, wait_for_event

PICTURE = BinaryImage(b"\x89PNG picture", media_type="image/png")
PAPER = BinaryContent(b"%PDF paper", media_type="application/pdf")
LINK = ImageUrl("https://example.com/river.png")
SCAN = DocumentUrl("https://example.com/river.pdf")

RESULTS: dict[str, tuple[Callable[[], Any], Sequence[Any], str]] = {
    "picture": (lambda: PICTURE, [PICTURE], "Result: [file 1: image/png, 12 bytes]"),
    "link": (lambda: LINK, [LINK], "Result: [file 1: https://example.com/river.png]"),
    "list": (lambda: ["see", PICTURE, PAPER], [PICTURE, PAPER], '["see","[file 1: image/png, 12 bytes]","[file 2: app'),
    "in a dict": (lambda: {"river": PAPER, "m": 4}, [PAPER], '{"river":"[file 1: application/pdf, 10 bytes]","m":4}'),
    "beside": (lambda: ToolReturn("4 m", content=["So it looks:", PICTURE]), [PICTURE], "Result: 4 m\nSo it looks:"),
    "words beside": (lambda: ToolReturn("4 m", content="Deep."), [], "Result: 4 m\nDeep."),
    "both": (lambda: ToolReturn([SCAN], content=[PICTURE, LINK]), [SCAN, PICTURE, LINK], '["[file 1: https://example'),
}


def script(messages: list[ModelMessage]) -> Any:
    said = last_user_text(messages)
    if "Background task" in said:
        return "I see."
    has_answer = any(part.part_kind == "tool-return" for part in messages[-1].parts)
    return "It goes on." if has_answer else call("survey")


def wake_in(request: Sequence[ModelMessage]) -> UserPromptPart:
    parts = [part for message in request for part in message.parts if isinstance(part, UserPromptPart)]
    return next(part for part in parts if "background_result" in str(part.content))


def seen_by(model: ScriptedModel) -> tuple[str, list[Any]]:
    content = wake_in(model.requests[-1].messages).content
    text, *files = [content] if isinstance(content, str) else content
    return str(text), files


@pytest.mark.parametrize("name", RESULTS)
async def test_files_of_a_parked_call_reach_the_model(runtime: Runtime, name: str) -> None:
    """A2, P2: in the wake, and in the history of every turn after it, over a restart."""
    make, files, words = RESULTS[name]
    here = Checkpoint()

    async def survey() -> Any:
        await here()
        return make()

    model, tools = ScriptedModel(script), [Tool(survey, metadata=hints(budget=0.01))]
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("survey")).outcome()
        here.open()
        await session.settled()
        text, seen = seen_by(model)
        assert (seen, words in text) == (list(files), True), text
        await check_nothing_of_the_store_is_seen(outlast, session, model)
    model = ScriptedModel(script)
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.get(session.id)
        await session.ask("Background task again?")
        text, seen = seen_by(model)
        assert (seen, words in text) == (list(files), True), text
        await check_nothing_of_the_store_is_seen(outlast, session, model)


async def check_nothing_of_the_store_is_seen(
    outlast: Outlast[Any, Any], session: Session, model: ScriptedModel
) -> None:
    assert all("$file" not in str(request.messages) for request in model.requests)
    [task] = await outlast.tasks.list(session_id=session.id)
    assert "$file" not in str(task.result)
    [accepted] = [each for each in await events_of(session, "input.accepted") if each.data["kind"] == "wake"]
    assert "$file" not in str(accepted.data)


async def test_files_come_with_the_wake_though_the_model_asked_before(runtime: Runtime) -> None:
    """A2, P2: `check_background` tells what there is; it does not take the files' place."""
    here = Checkpoint()

    async def survey() -> Any:
        await here()
        return PICTURE

    def asks(messages: list[ModelMessage]) -> Any:
        answered = [part.tool_name for message in messages for part in message.parts if part.part_kind == "tool-return"]
        if "background_result" in last_user_text(messages):
            return "I see."
        if "survey" not in answered:
            return call("survey")
        return "Waiting." if "check_background" in answered else call("check_background", wait_seconds=10)

    model = ScriptedModel(asks)
    async with runtime(model, tools=[Tool(survey, metadata=hints(budget=0.01))]) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("survey")
        await wait_for_event(session, "task.created")
        here.open()
        await sent.outcome()
        await session.settled()
        assert seen_by(model)[1] == [PICTURE]
        assert all("$file" not in str(request.messages) for request in model.requests)
