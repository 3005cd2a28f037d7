"""The guide to chat in a page shows the example's own code, and the example can be installed everywhere."""

import json
import re
from inspect import signature
from pathlib import Path
from textwrap import dedent

import pytest

from outlast.calls import call
from outlast.wire.task import Task
from outlast.wire.task_state import TaskState

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "chat-in-a-page.md"
EXAMPLE = ROOT / "examples" / "page"
SHOWN = re.compile(r"^```\n// (?P<file>src/\S+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LOCKS = (EXAMPLE, ROOT / "tests" / "node")


def blocks(text: str, size: int) -> set[str]:
    """All runs of so many lines, without their common indent."""
    lines = text.splitlines()
    return {dedent("\n".join(lines[at : at + size])) for at in range(len(lines) - size + 1)}


def test_what_the_guide_shows_stands_in_the_example() -> None:
    found = list(SHOWN.finditer(GUIDE.read_text(encoding="utf-8")))
    assert {each["file"] for each in found} == {"src/Chat.tsx", "src/server.ts", "src/news.ts", "src/tasks.ts"}
    for each in found:
        code = each["code"].rstrip("\n")
        text = (EXAMPLE / each["file"]).read_text(encoding="utf-8")
        assert dedent(code) in blocks(text, len(code.splitlines())), each.group()


def test_the_page_reads_of_a_task_what_the_server_sends() -> None:
    """A name that nobody sends would type-check, and show nothing."""
    said = (EXAMPLE / "src" / "tasks.ts").read_text(encoding="utf-8").partition("export type Task = {")[2]
    fields = dict(re.findall(r"^  (\w+): (.*);$", said.partition("\n};")[0], re.MULTILINE))
    assert set(fields) <= set(Task.model_fields)
    assert tuple(re.findall(r'"(\w+)"', fields["state"])) == tuple(TaskState)
    assert re.findall(r"(\w+):", fields["progress"]) == list(signature(call.progress).parameters)


def test_the_readme_of_the_example_names_its_files() -> None:
    named = set(re.findall(r"^\| `([^`]+)` \|", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    sources = {f"src/{each.name}" for each in (EXAMPLE / "src").iterdir()} - {"src/main.tsx", "src/style.css"}
    assert named == sources | {"vite.config.ts", "app.py"}


@pytest.mark.parametrize("folder", LOCKS, ids=lambda folder: folder.name)
def test_a_lock_names_the_builds_for_all_platforms(folder: Path) -> None:
    """Else `npm ci` refuses it: `node tests/node/complete-lock.mjs FOLDER` adds what is missing."""
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    optional = {name for each in packages.values() for name in each.get("optionalDependencies", {})}
    assert {name for name in optional if f"node_modules/{name}" not in packages} == set()
    assert not any("resolved" in each for each in packages.values()), "a lock names no registry"
