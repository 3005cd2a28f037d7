"""Every requirement has tests, or its row says what is missing."""

from docs.requirements_page import MISSING, ROWS, SECTIONS, shown_by


def test_each_row_has_tests_or_says_what_is_missing() -> None:
    shown = shown_by()
    assert [row for row in ROWS if row not in shown and row not in MISSING] == []


def test_tests_and_notes_name_rows_that_there_are() -> None:
    """A row that nobody wrote down would be shown nowhere."""
    named = {row for row in shown_by() if row[0] in SECTIONS}
    assert sorted(named - ROWS.keys()) == []
    assert sorted(MISSING.keys() - ROWS.keys()) == []
