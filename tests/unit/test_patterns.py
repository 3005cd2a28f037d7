"""Every pattern that foreign text is fed to takes time in proportion to the text.

One that takes the square of it lets a single message stop a process.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time
from typing import cast

import pytest

import outlast
from outlast.values.escape import OWN_TAGS, escape
from outlast.values.secrets import Secrets

ONCE = 2_000
TIMES = 8
MOST_TIMES = 3 * TIMES
"""A square would be 64. Generous, because the machine does other things meanwhile."""
LEAST_SECONDS = 0.001
"""What is shorter cannot be measured: so much is allowed for the single text. A square needs some hundred of it."""

_BEGINNINGS = (
    *(
        "",
        "<",
        "</",
        "< /",
        "&lt;",
        "\x1b",
        "\x1b[",
        "\x1b]",
        "'",
        '"',
        "[",
        "{",
        "(",
        "=",
        "token",
        "token=",
        "token:",
    ),
    *("'token' ", "password='", 'password = "', "authorization: bearer", "auth=", "olk_", "1.", "$", ".ses_", "\\"),
)
_RUNS = (
    *(
        " ",
        "\t",
        "\n",
        "\u00a0",
        "\u200b",
        "\u00ad",
        "<",
        "</",
        "< ",
        "/ ",
        " /",
        "<<",
        ">",
        "'",
        '"',
        "' ",
        "['",
        "[",
        "]",
    ),
    *(
        "{",
        "(",
        "=",
        "= ",
        "=:",
        ":",
        ";",
        "0",
        "0;",
        "?",
        "a",
        "A",
        "_",
        ".",
        "$1",
        "\x1b",
        "\x1b[",
        "\x1b[0",
        "\x1bO",
    ),
    *(
        "token",
        "token ",
        "token=",
        "token='",
        "token: ",
        "bearer ",
        "token=bearer ",
        "secret\"='",
        "token_",
        "\x00",
        "é",
    ),
    *("<background_result", "< runtime_notice", "</ attached_", "runtime_notice", "&lt;", "0123456789abcdef", "\ud83d"),
)
_ENDS = ("", "!", "'")


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for found in pkgutil.walk_packages(outlast.__path__, "outlast."):
        if found.name.endswith("__main__") or ".migrations" in found.name:
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield f"{found.name}.{name}", cast(re.Pattern[str], value)


PATTERNS = dict(_patterns())


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Of this thread's processor: what others do on the machine is not counted."""
    began = thread_time()
    work(text)
    return thread_time() - began


def _shapes(length: int) -> Iterator[str]:
    for beginning in _BEGINNINGS:
        for run in _RUNS:
            for end in _ENDS:
                yield beginning + run * (length // len(run)) + end


def _is_in_proportion(work: Callable[[str], object], once: str, often: str) -> bool:
    often_seconds = _seconds(work, often)
    return often_seconds <= MOST_TIMES * LEAST_SECONDS or often_seconds <= MOST_TIMES * _seconds(work, once)


def _check(work: Callable[[str], object]) -> None:
    for once, often in zip(_shapes(ONCE), _shapes(ONCE * TIMES), strict=True):
        is_so = any(_is_in_proportion(work, once, often) for _ in range(6))
        assert is_so, f"more than in proportion: {once[:40]!r}… {once[-1:]!r}"


def test_the_patterns_of_the_package_are_found() -> None:
    assert {"outlast.values.escape._OWN_TAG", "outlast.values.redact._IN_TEXT"} <= PATTERNS.keys()


def _uses(tree: ast.Module) -> Iterator[str]:
    """What a module asks of `re`, but for patterns that it keeps under a name, which are found above."""
    kept = [each.value for each in tree.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
            is_kept = any(isinstance(each, ast.Call) and each.func is node for each in kept)
            if node.attr not in ("I", "X", "escape", "Match", "Pattern") and not (node.attr == "compile" and is_kept):
                yield ast.unparse(node)


def test_no_pattern_is_hidden_from_this_test() -> None:
    """Each stands in a module under a name of its own: a new one is fed with all shapes by itself."""
    found = {str(path): [*_uses(ast.parse(path.read_text()))] for path in Path(outlast.__path__[0]).rglob("*.py")}
    assert {path: uses for path, uses in found.items() if uses} == {}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(name: str) -> None:
    pattern = PATTERNS[name]

    def work(text: str) -> None:
        pattern.sub("", text)
        pattern.match(text)
        pattern.fullmatch(text)

    _check(work)


def test_masking_takes_time_in_proportion_to_the_text() -> None:
    secrets = Secrets()
    for value in ("aaaaaaaaab", "      !", "token=token=x", "<<<<<<<>"):
        secrets.add(value)
    _check(secrets.mask)


@pytest.mark.parametrize("tag", OWN_TAGS)
@pytest.mark.parametrize("form", ["<{}>", "< {}>", "</{}>", "< / {}>", "<\n/\t{}>", "<{} x='1'>", "<<{}>"])
def test_the_runtimes_own_tags_are_made_harmless_however_they_are_spaced(tag: str, form: str) -> None:
    for each in (tag, tag.upper()):
        assert f"<{each}" not in escape(form.format(each)).replace(" ", "").replace("/", "").replace("\n", "")
        assert "&lt;" in escape(form.format(each))


@pytest.mark.parametrize("text", ["<p>", "<attached_contexts>", "a < b / c", "< / >", "</div>", "<" + " " * 40_000])
def test_all_other_markup_stays(text: str) -> None:
    assert escape(text) == text
