"""Tools for the files of the session, `outlast.files` in a tool, and the list of what is to be done."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage
from pydantic_core import from_json

import outlast as public
from outlast.errors import InvalidInput
from outlast.testing import Step, call, tool_returns
from outlast.toolkit import file_tools, todo_tools
from outlast.values.file_name import check_name, fitting, wrong_with
from tests.support.turns.runtime import Runtime, events_of


def in_turn(*steps: Any) -> Any:
    """One call after the other; the words of each result are kept by the model's own history."""

    def script(messages: list[ModelMessage]) -> Step:
        done = len(tool_returns(messages))
        return steps[done] if done < len(steps) else "Done."

    return script


async def test_a_model_keeps_files_by_name(runtime: Runtime) -> None:
    """A14: write, list, stat, read, edit, grep, delete."""
    steps = in_turn(
        call("write_file", name="notes.md", text="one\ntwo\nthree\n"),
        call("edit_file", name="notes.md", old="two", new="2"),
        call("read_lines", name="notes.md", first=2, count=1),
        call("grep_files", pattern="thr"),
        call("list_files"),
        call("stat_file", name="notes.md"),
        call("edit_file", name="notes.md", old="nowhere", new="x"),
        call("delete_file", name="notes.md"),
        call("read_lines", name="notes.md"),
    )
    async with runtime(steps, tools=file_tools()) as outlast:
        session = await outlast.sessions.create()
        done = (await session.ask("Take notes.")).calls
        [started, *_] = await events_of(session, "call.started")
        assert await session.files.list() == []
    results = [each.result for each in done]
    assert started.data["narration"] == "Writing notes.md"
    assert results[2] == {"lines_total": 3, "text": "2", "next": 3}
    assert results[3] == {"lines": [{"name": "notes.md", "line": 3, "text": "three"}]}
    assert [each["name"] for each in results[4]] == ["notes.md"]
    assert (results[5]["media_type"], results[5]["bytes"]) == ("text/markdown", 12)
    assert "is not there" in str(done[6])
    assert "list_files says which there are" in str(done[8])


async def test_edits_of_one_step_are_all_made(runtime: Runtime) -> None:
    """A14: models edit a file in several places at once; each edit is made in what the others left."""
    words = ("one", "two", "three", "four", "five")

    def script(messages: list[ModelMessage]) -> Step:
        done = len(tool_returns(messages))
        if done == 0:
            return call("write_file", name="a.txt", text=" ".join(words))
        edits = [call("edit_file", name="a.txt", old=each, new=each.upper()) for each in words]
        return edits if done == 1 else "Done."

    async with runtime(script, tools=file_tools()) as outlast:
        session = await outlast.sessions.create()
        done = (await session.ask("Louder.")).calls
        assert [each.result["replaced"] for each in done[1:]] == [1] * len(words)
        [kept] = await session.files.list()
        assert (await outlast.files.get(kept.id)).data == " ".join(words).upper().encode()


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a\\b", "", " ", ".hidden", "a\0b", "a\nb", "x" * 201, "\u202etxt"]
)
async def test_odd_names_are_refused_with_words(runtime: Runtime, name: str) -> None:
    """A14, D12: no name leads to a place."""
    async with runtime(in_turn(call("write_file", name=name, text="x")), tools=file_tools()) as outlast:
        session = await outlast.sessions.create()
        done = (await session.ask("Write.")).calls
        assert "is no name of a file" in str(done[0])
        with pytest.raises(InvalidInput, match="is no name of a file"):
            await session.files.add(name, b"x")
        assert await session.files.list() == []
        folders = {each.name for each in runtime.files.rglob("*")} - {"check"}
    assert not folders


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_name_is_taken_or_refused_and_fits_when_it_is_made_to(name: str) -> None:
    """D12: what others call a file becomes a name, whatever it is."""
    assert wrong_with(fitting(name)) is None
    if wrong_with(name) is None:
        assert check_name(name) == name
        assert not {"/", "\\", "\0", "\n"} & set(name)
    else:
        with pytest.raises(InvalidInput):
            check_name(name)


async def measure() -> str:
    """Measure."""
    return await public.files.write("levels.csv", "3\n5\n", "text/csv")


async def add_up(file_id: str) -> int:
    """Add up."""
    return sum(int(line) for line in (await public.files.read(file_id)).decode().split())


async def test_a_value_passes_from_one_tool_to_another_by_its_id(runtime: Runtime) -> None:
    """D12, A3: the model passes on the reference alone."""

    def script(messages: list[ModelMessage]) -> Step:
        results = list(tool_returns(messages).values())
        return [call("measure"), call("add_up", file_id=results[0]) if results else "", "8."][len(results)]

    async with runtime(script, tools=[Tool(measure), Tool(add_up)]) as outlast:
        session = await outlast.sessions.create()
        done = (await session.ask("How much?")).calls
        [kept] = await session.files.list()
    assert done[1].result == 8
    assert (kept.name, kept.media_type, kept.origin, kept.id) == ("levels.csv", "text/csv", "tool", done[0].result)


async def test_the_list_of_what_is_to_be_done_outlives_a_restart(runtime: Runtime) -> None:
    """A14: it is kept with the session, and people can read it."""
    todos = [{"text": "Ask the bank", "state": "done"}, {"text": "Pay", "state": "doing"}]
    async with runtime(in_turn(call("write_todos", todos=todos)), tools=todo_tools()) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Plan.")
        [started] = await events_of(session, "call.started")
        assert started.data["narration"] == "1 of 2 done; now: Pay"
    again = in_turn(None, call("read_todos"))
    async with runtime(again, tools=todo_tools()) as outlast:
        session = await outlast.sessions.get(session.id)
        assert (await session.ask("What is left?")).calls[0].result == todos
        [kept] = await session.files.list()
        assert from_json((await outlast.files.get(kept.id)).data) == todos
