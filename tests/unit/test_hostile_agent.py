"""The judge of the hostile agent: a check that sees nothing finds nothing."""

import pytest

from fuzz.hostile_agent import Report, obeyed


def test_what_turns_text_around_is_seen_as_what_a_terminal_obeys() -> None:
    assert obeyed("plain\n\ttext, שלום, é") == set()
    assert obeyed("a\x1b[2J\u202eb\u2066c") == {"\x1b", "\u202e", "\u2066"}


def test_a_failure_is_told_when_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.fail("case 7: no result")
    assert (report.failures, capsys.readouterr().err) == (["case 7: no result"], "case 7: no result\n")
