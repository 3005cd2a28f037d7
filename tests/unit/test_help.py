"""What `--help` says of each verb: all of it, in whole paragraphs."""

import inspect
import re
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from outlast.cli.chat.verb import chat
from outlast.cli.main import app
from outlast.cli.server.serve import serve
from outlast.cli.server.worker import worker
from outlast.cli.verbs.doctor import doctor
from outlast.cli.verbs.talk import attach, send
from outlast.cli.verbs.tasks import logs, settle

CHAT = ("chat", "--help")


def said(*arguments: str) -> str:
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"}).output
    return re.sub(r"[\s│╭╮╰╯─]+", " ", shown)


@pytest.mark.parametrize("default", ["[default: a server]", "[default: outlast.db]", "[env: OUTLAST_URL]"])
def test_what_stands_in_brackets_is_shown(default: str) -> None:
    """K1: it is text, and not a style that is left out."""
    assert default in said(*CHAT)


def test_lines_of_a_paragraph_are_joined() -> None:
    """K1: a row ends where the terminal does, not where the source does."""
    shown = CliRunner().invoke(app, CHAT, env={"COLUMNS": "100"}).output
    rows = [row.strip() for row in shown.partition("Without an app")[2].partition("╭")[0].splitlines() if row.strip()]
    assert all(len(row) > 80 for row in rows[1:-1])


@pytest.mark.parametrize("verb", [serve, worker, chat, send, attach, settle, doctor, logs])
def test_no_word_of_a_verb_is_lost(verb: Callable[..., None]) -> None:
    """K1: what its docstring says is what a person reads."""
    told = inspect.getdoc(verb)
    assert told
    assert " ".join(told.replace("`", "").split()) in said(verb.__name__, "--help")
