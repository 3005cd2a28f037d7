"""Where a session is shown in a terminal."""

import asyncio
import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from outlast import ids
from outlast.cli.terminal.displays import LinesDisplay
from outlast.cli.terminal.lines import LineStream
from outlast.cli.terminal.screen import PlainScreen, WrappingScreen, fitting
from outlast.cli.terminal.session_view import SessionView
from outlast.events.event import Event
from tests.support.screens.emulator import Emulator


@pytest.mark.parametrize(
    ("words", "width", "cut"),
    [
        ("short", 10, 5),
        ("one two three", 8, 8),
        ("one two three", 7, 8),
        ("unbreakable", 4, 4),
        ("木木木", 4, 2),
        ("木", 1, 1),
    ],
)
def test_a_row_breaks_between_words(words: str, width: int, cut: int) -> None:
    """K1: and where there is no other place, inside one; wide characters take two cells."""
    assert fitting(words, width) == cut


def test_words_that_come_in_pieces_are_wrapped_and_end_before_the_next_line() -> None:
    """K1: no row is wider than the display, reasoning and answer do not share a row, and nothing is lost."""
    shown = io.StringIO()
    with WrappingScreen(LinesDisplay(Console(file=shown, width=12))) as screen:
        screen.say("Hm.", is_reasoning=True)
        for piece in ("one two ", "three four", " five\nsix"):
            screen.say(piece)
        screen.line(Text("a note"))
        screen.say("the last words")
    assert [line.rstrip() for line in shown.getvalue().splitlines()] == [
        "Hm.",
        "one two",
        "three four",
        "five",
        "six",
        "a note",
        "the last",
        "words",
    ]


def test_progress_does_not_interrupt_a_sentence() -> None:
    """K1: where no status is seen, it is told when the sentence is over, once, as it is then.

    A call may have come far before it was parked.
    """
    shown = io.StringIO()
    view = SessionView(PlainScreen(Console(file=shown, width=80)))
    task = {"id": "tsk_1", "title": "survey", "tool": "survey", "state": "running"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("part.started", {"part": "1.1.0", "kind": "text"}),
        ("part.delta", {"part": "1.1.0", "text": "Half a "}),
        ("task.changed", {"task": {**task, "progress": {"current": 1, "total": 4}}}),
        ("task.changed", {"task": {**task, "progress": {"current": 2, "total": 4}}}),
        ("part.delta", {"part": "1.1.0", "text": "sentence."}),
        ("part.ended", {"part": "1.1.0"}),
        ("task.changed", {"task": {**task, "progress": {"current": 3, "total": 4}}}),
        ("task.created", {"task": {**task, "id": "tsk_2", "progress": {"current": 1, "total": 4}}}),
    ]
    for number, (kind, data) in enumerate(events):
        view.show(Event(ids.session_id(), number, kind, datetime.now(UTC), data))
    sentence, *progress = shown.getvalue().splitlines()
    assert sentence == "Half a sentence."
    assert [re.sub("[█░]+ +", "", line) for line in progress] == [
        "↷ survey 50%  2 of 4",
        "↷ survey 75%  3 of 4",
        "↷ survey 25%  1 of 4",
    ]


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ([], "✗ charge(amount=5) interrupted after 13 s: It was stopped."),
        ([("turn.resumed", {"attempt": 2})], "✗ charge(amount=5) interrupted: It was stopped."),
    ],
)
def test_how_long_a_call_ran_is_told_only_if_it_is_known(between: list[tuple[str, dict[str, Any]]], told: str) -> None:
    """K1: nobody knows when a call ended whose process did; the time until a new one began is not how long it ran."""
    shown = io.StringIO()
    view = SessionView(PlainScreen(Console(file=shown, width=80)))
    call = {"call_id": "call_1", "tool": "charge"}
    begun = ("call.started", {**call, "args": {"amount": 5}})
    ended = ("call.ended", {**call, "outcome": "interrupted", "part": {"content": "It was stopped."}})
    began_at = datetime.now(UTC)
    for number, (kind, data) in enumerate([begun, *between, ended]):
        at = began_at if number == 0 else began_at + timedelta(seconds=13)
        view.show(Event(ids.session_id(), number, kind, at, data))
    assert shown.getvalue().splitlines()[-1] == told


async def test_lines_from_any_thread_are_shown_whole_and_in_the_loop() -> None:
    """K1: what a tool prints in its thread must not tear the prompt apart."""
    shown: list[tuple[str, bool]] = []
    loop = asyncio.get_running_loop()

    def show(line: str) -> None:
        shown.append((line, asyncio.get_running_loop() is loop))

    stream = LineStream(io.StringIO(), loop, show)
    stream.write("half a ")
    assert shown == []
    stream.write("line\nrest")
    stream.flush()
    await asyncio.to_thread(print, "from a thread", file=stream)
    while len(shown) < 3:  # noqa: ASYNC110 - the line is on its way to this loop
        await asyncio.sleep(0)
    assert shown == [("half a line", True), ("rest", True), ("from a thread", True)]
    assert not stream.isatty()


def test_the_emulator_follows_the_cursor() -> None:
    """Tests of the terminal rest on it: rows that change are noted whole, erased ones not again."""
    emulator = Emulator(rows=3, columns=10)
    emulator.feed("one\r\ntwo 25%")
    emulator.feed("\x1b[3D50")
    emulator.feed("\r\x1b[A\x1b[Jthree\r\n\x1b[1mfo")
    emulator.feed("ur\x1b[0")
    emulator.feed("m\r\nfive and more")
    assert emulator.transcript == "one\ntwo 25%\ntwo 50%\nthree\nfo\nfour\nfive and more\n"


def test_what_cannot_be_read_is_told_in_its_place() -> None:
    """K1: a flag stands there that says what was lost, not that the agent woke itself."""
    shown = io.StringIO()
    view = SessionView(PlainScreen(Console(file=shown, width=80)))
    told = [{"reason": "unreadable", "message": "It cannot be read."}, {"reason": "woken_too_often", "woken_turns": 20}]
    for number, data in enumerate(told, 1):
        view.show(Event(ids.session_id(), number, "session.flagged", datetime.now(UTC), data))
    assert "It cannot be read." in shown.getvalue()
    assert "woke itself 20 times" in shown.getvalue()
