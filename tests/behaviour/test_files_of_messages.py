"""Files on messages: models that take them are shown them, the others are told how to read them."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.profiles import ModelProfile

from outlast import Attachment
from outlast.errors import BodyTooLarge, InvalidInput
from outlast.testing import ScriptedModel, Step, call, tool_returns
from tests.support.turns.runtime import Runtime, events_of, scripted

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))
CSV = Attachment("levels.csv", b"3\n5\n", "text/csv")
IMAGE = Attachment("rhine.png", PNG, "image/png")


def said(messages: Sequence[ModelMessage]) -> list[Any]:
    """What people's messages came to for the model."""
    parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
    contents = [part.content for part in parts if isinstance(part, UserPromptPart)]
    return [item for content in contents for item in ([content] if isinstance(content, str) else content)]


@pytest.mark.parametrize("takes_images", [True, False])
async def test_an_image_goes_to_a_model_that_takes_images(runtime: Runtime, takes_images: bool) -> None:
    """D12: in later turns and after a restart too; another model is told that it was left out."""
    seen: list[list[Any]] = []

    def script(messages: list[ModelMessage]) -> Step:
        seen.append(said(messages))
        return "A river."

    def agent() -> Agent[None, str]:
        profile = ModelProfile(supports_image_input=takes_images)
        return Agent(ScriptedModel(script, profile=profile), name="agent")

    async with runtime(agent=agent()) as outlast:
        session = await outlast.sessions.create()
        await session.ask("What is this?", files=[IMAGE])
    async with runtime(agent=agent()) as outlast:
        await (await outlast.sessions.get(session.id)).ask("Are you sure?")
    for each in seen:
        images = [item.data for item in each if isinstance(item, BinaryContent)]
        notes = [item for item in each if isinstance(item, str) and "was not sent" in item]
        assert (images, len(notes)) == (([PNG], 0) if takes_images else ([], 1))
        assert any("rhine.png" in item for item in each if isinstance(item, str))


@pytest.mark.parametrize("is_of_a_tool", [True, False])
async def test_a_large_image_counts_as_an_image_and_not_as_its_bytes(runtime: Runtime, is_of_a_tool: bool) -> None:
    """D12, D14: it fits the window, and is not summarised away before the next turn."""
    picture = PNG[:8] + bytes(range(256)) * 8_000

    def pictures(messages: list[ModelMessage]) -> int:
        return repr(messages).count(repr(picture[:200])[:-1])

    def script(messages: list[ModelMessage]) -> Step:
        seen.append(pictures(messages))
        return call("draw") if is_of_a_tool and not tool_returns(messages) else "A river."

    def draw() -> BinaryContent:
        return BinaryContent(picture, media_type="image/png")

    seen: list[int] = []
    agent = Agent(ScriptedModel(script, profile=ModelProfile(supports_image_input=True)), name="agent", tools=[draw])
    async with runtime(agent=agent, context_window=200_000) as outlast:
        session = await outlast.sessions.create()
        await session.ask("What is it?", files=[] if is_of_a_tool else [Attachment("a.png", picture, "image/png")])
        await session.ask("Are you sure?")
        assert await events_of(session, "history.compacted") == []
        assert seen[-2:] == [1, 1]


async def test_other_files_are_named_and_read(runtime: Runtime) -> None:
    """D12: with `read_file`, by name or by the id that the message told; also in a fork."""

    def script(messages: list[ModelMessage]) -> Step:
        results = list(tool_returns(messages).values())
        return [call("read_file", id="levels.csv", offset=2), "5."][min(len(results), 1)]

    async with runtime(script) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Read it.", files=[CSV])
        assert outcome.calls[0].result == {"text": "5\n", "characters_total": 4}
        [kept] = await session.files.list()
        fork = await outlast.sessions.fork(session.id)
        await outlast.sessions.delete(session.id)
        [copy] = await fork.files.list()
        assert (copy.name, copy.id == kept.id) == ("levels.csv", False)
        assert (await outlast.files.get(copy.id)).data == CSV.data
    async with runtime(scripted(call("read_file", id=kept.id), "3 and 5.")) as outlast:
        again = await (await outlast.sessions.get(fork.id)).ask("All of it?")
        assert again.calls[-1].result["text"] == "3\n5\n"


async def test_a_message_takes_files_that_are_there_by_id(runtime: Runtime) -> None:
    """D12: only the owner's own."""
    async with runtime(scripted("Yes.", "Yes.", "No.")) as outlast:
        first = await outlast.sessions.create()
        kept = await first.files.add("rhine.png", PNG, "image/png")
        second = await outlast.sessions.create()
        await second.ask("And this?", files=[kept.id, CSV])
        assert [each.name for each in await second.files.list()] == ["levels.csv", "rhine.png"]
        await first.ask("This?", files=[kept.id])
        assert [each.id for each in await first.files.list()] == [kept.id]
        ben = await outlast.owned_by("ben").create()
        for wrong in (kept.id, "rhine.png", "fil_x", "../x", ""):
            with pytest.raises(InvalidInput, match="ids of your own files"):
                await ben.send("Show me.", files=[wrong])


async def test_files_of_messages_have_limits(runtime: Runtime) -> None:
    """D12: what has no room is refused, and the message with it."""
    async with runtime(scripted("Yes."), max_file_bytes=50, max_session_bytes=60) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(BodyTooLarge):
            await session.send("Look.", files=[IMAGE])
        await session.ask("Look.", files=[Attachment("a", b"x" * 50)])
        with pytest.raises(BodyTooLarge, match="Delete some first"):
            await session.send("Look.", files=[Attachment("b", b"y" * 50)])
