"""What one run of an attempt knows of its calls, and what the next one takes over."""

from typing import Any
from unittest.mock import sentinel

import pytest

from outlast.calls import outcomes
from outlast.calls.record import MOVES, CallRecord, CallRecords, CallState

RUNS_ON: Any = sentinel.runs_on


def test_a_call_that_began_here_and_asked_for_something_did_not_begin_elsewhere() -> None:
    """P2: what is known to have begun here is not run again with its step."""
    records = CallRecords()
    records.begin("here")
    records.begin_elsewhere("here", "there")
    assert records.begun_here() == {"here"}
    assert records.of("there").state is CallState.ELSEWHERE
    assert records.of("there").has_begun


def test_what_runs_on_is_watched_by_the_next_run_and_after_its_id_was_used_again() -> None:
    """A5: nothing runs untracked."""
    first = CallRecords()
    first.begin("c1").move(CallState.UNCONFIRMED, RUNS_ON)
    records = CallRecords()
    records.go_on_from(first)
    assert records.of("c1").unconfirmed is RUNS_ON
    records.expect(["c1"])
    later = CallRecords()
    later.go_on_from(records)
    assert (later.by_id, later.superseded, later.running_on()) == ({}, [RUNS_ON], [RUNS_ON])


def test_every_state_has_its_moves() -> None:
    assert MOVES.keys() == set(CallState)


@pytest.mark.parametrize("ended", [CallState.SUCCEEDED, CallState.FAILED, CallState.PARKED])
def test_an_end_is_not_overwritten_by_a_cancel_that_comes_later(ended: CallState) -> None:
    """P6: a stop tells what really happened."""
    record = CallRecords().begin("c1")
    assert record.move(ended, sentinel.detail)
    assert not record.move(CallState.CANCELED)
    assert not record.move(CallState.UNCONFIRMED, RUNS_ON)
    assert (record.state, record.detail) == (ended, sentinel.detail)


@pytest.mark.parametrize(
    ("record", "was_in_flight", "words"),
    [
        (CallRecord(), False, outcomes.NOT_RUN),
        (CallRecord(), True, outcomes.MAY_HAVE_RUN),
        (CallRecord(CallState.RUNNING, has_begun=True), False, outcomes.CANCELED),
        (CallRecord(CallState.CANCELED, has_begun=True, may_run_again=True), False, outcomes.CANCELED_REPEATABLE),
        (CallRecord(CallState.ELSEWHERE, has_begun=True), False, outcomes.CANCELED),
        (CallRecord(CallState.DEFERRED, outcomes.NEEDS_APPROVAL), False, outcomes.NEEDS_APPROVAL),
    ],
)
def test_a_call_without_an_end_is_told_truthfully(record: CallRecord, was_in_flight: bool, words: str) -> None:
    """P2: one function says what a call came to."""
    part = record.came_to("act", "c1", was_in_flight=was_in_flight)
    assert (part.outcome, part.content) == ("interrupted", words)
