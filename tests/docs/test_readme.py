"""Every Python example in the README and the docs runs as printed and says what is printed under it.

The examples of a page share a folder and run in order, each in a process of its own. One that begins with
`# name.py` is saved under that name, so that later ones can import it. A `text` block that follows an example
is its exact output.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#]+)(?:#[^)]*)?\)")
KNOWN_INFO = {"python", "text", ""}


@dataclass(frozen=True)
class Example:
    code: str
    output: str

    def name(self, number: int) -> str:
        named = re.match(r"# (\w+\.py)\n", self.code)
        return named[1] if named else f"example_{number}.py"


def examples(page: Path) -> Iterator[Example]:
    blocks = list(FENCE.finditer(page.read_text(encoding="utf-8")))
    for at, block in enumerate(blocks):
        if block["info"] == "python":
            following = blocks[at + 1] if at + 1 < len(blocks) else None
            is_output = following is not None and following["info"] == "text"
            yield Example(block["body"], following["body"] if following is not None and is_output else "")


def with_examples() -> list[Path]:
    return [page for page in PAGES if any(examples(page))]


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_and_the_tutorial_have_examples() -> None:
    assert {"README.md", "docs/tutorial.md"} <= set(map(title, with_examples()))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", with_examples(), ids=title)
def test_examples_say_what_is_printed(page: Path, tmp_path: Path) -> None:
    """K5: what the docs show is what a user sees."""
    found = list(examples(page))
    files = [tmp_path / example.name(number) for number, example in enumerate(found, 1)]
    for file, example in zip(files, found, strict=True):
        file.write_text(example.code, encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "tests.support.processes.run_examples", *files]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1"}, check=True)
    for file, example in zip(files, found, strict=True):
        assert file.with_suffix(".code").read_text() == "0", file.with_suffix(".err").read_text()
        assert file.with_suffix(".out").read_text(encoding="utf-8") == example.output, file.name


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_no_example_is_left_out(page: Path) -> None:
    """A fence is Python that runs, output or commands in plain text; nothing else could be checked."""
    assert {block["info"] for block in FENCE.finditer(page.read_text(encoding="utf-8"))} <= KNOWN_INFO


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = [found["target"] for found in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []
