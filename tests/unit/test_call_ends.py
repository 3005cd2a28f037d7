"""What one run of an attempt knows of its calls, and what the next one takes over."""

from typing import Any
from unittest.mock import sentinel

from outlast.calls.ends import CallEnds

RUNS_ON: Any = sentinel.runs_on


def test_a_call_that_began_here_and_asked_for_something_did_not_begin_elsewhere() -> None:
    """P2: what is known to have begun here is not run again with its step."""
    ends = CallEnds(begun={"here"})
    ends.begin_elsewhere("here", "there")
    assert (ends.begun, ends.elsewhere) == ({"here", "there"}, {"there"})


def test_what_runs_on_is_watched_by_the_next_run_and_after_its_id_was_used_again() -> None:
    """A5: nothing runs untracked."""
    ends = CallEnds()
    ends.go_on_from(CallEnds(begun={"c1"}, unconfirmed={"c1": RUNS_ON}))
    assert ends.unconfirmed == {"c1": RUNS_ON}
    ends.expect(["c1"])
    later = CallEnds()
    later.go_on_from(ends)
    assert (later.begun, later.unconfirmed, later.superseded) == (set(), {}, [RUNS_ON])
