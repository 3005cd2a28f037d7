"""The judge of a cluster can fail, and says what it should: takeovers, recoveries, readers that hung."""

import pytest

from chaos.cluster.faults import WEIGHTS, plan
from chaos.cluster.judge import Lives, hanging_faults, is_alone, recoveries, takeover_faults
from chaos.evidence import Evidence, LogEvent, Row, SessionRows
from chaos.ledger import Entry

SECOND = 1_000_000
KILLED = 100 * SECOND
LIVES = Lives(
    names={"a": (1, 0), "b": (2, 0), "c": (3, 0), "d": (4, 0)},
    deaths={1: (KILLED, KILLED + 1_000)},
    freezes={3: [(200 * SECOND, 212 * SECOND)], 4: [(300 * SECOND, 303 * SECOND)]},
)
"""Process 1 is killed, 2 lives, 3 is frozen for twelve seconds and 4 for three."""


def evidence(*claims: tuple[str, int], tasks: list[Row] | None = None, ledger: list[Entry] | None = None) -> Evidence:
    """A turn that was claimed by these workers at these times."""
    events = [
        LogEvent(at, "turn.resumed" if at else "turn.started", "t", {"worker_id": worker_id}, at_us)
        for at, (worker_id, at_us) in enumerate(claims)
    ]
    return Evidence({"s": SessionRows({"id": "s"}, tasks=tasks or [], events=events)}, ledger or [], [], [], [], {})


def cut_at(*seconds: float) -> Lives:
    """The same lives, with connections that were cut at these times."""
    cuts = [(int(each * SECOND), int(each * SECOND) + 1_000) for each in seconds]
    return Lives(LIVES.names, LIVES.deaths, LIVES.freezes, cuts)


def test_the_faults_follow_from_the_seed() -> None:
    """What a run found can be looked for again: the same faults in the same order, each kind among the first."""
    assert plan(7, 50) == plan(7, 50) != plan(8, 50)
    assert set(plan(7, len(WEIGHTS))) == WEIGHTS.keys()


def test_a_turn_of_a_killed_worker_goes_on_elsewhere() -> None:
    """P5: that is no false takeover, and the time until then is counted from the kill."""
    found = evidence(("a", KILLED - SECOND), ("b", KILLED + 1_500_000))
    assert list(takeover_faults(found, LIVES)) == []
    assert list(recoveries(found, LIVES)) == [(KILLED, 1.5)]


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([("b", 1), ("c", 2)], id="from one that lived"),
        pytest.param([("a", 1), ("b", KILLED - 1)], id="before the kill"),
        pytest.param([("c", 1), ("b", 205 * SECOND)], id="before the silence was long enough"),
        pytest.param([("d", 1), ("b", 304 * SECOND)], id="after a freeze that was too short"),
    ],
)
def test_a_turn_that_was_taken_from_a_living_worker_is_found(claims: list[tuple[str, int]]) -> None:
    """P5: the judge can fail."""
    assert [fault.kind for fault in takeover_faults(evidence(*claims), LIVES)] == ["false_takeovers"]


def test_a_turn_may_be_taken_from_a_worker_that_was_silent_for_too_long() -> None:
    """P5: a frozen process cannot be told from a dead one."""
    assert list(takeover_faults(evidence(("c", 1), ("b", 211 * SECOND)), LIVES)) == []


def test_a_turn_may_be_taken_from_a_frozen_worker_whose_connection_was_cut() -> None:
    """P5: it could not come back, so its lock was free; a cut that it could answer is no reason."""
    short = evidence(("d", 1), ("b", 302 * SECOND))
    assert list(takeover_faults(short, cut_at(300.5))) == []
    assert list(takeover_faults(short, cut_at(299.5))) == []
    for elsewhere in (250, 301.5, 305):
        assert [fault.kind for fault in takeover_faults(short, cut_at(elsewhere))] == ["false_takeovers"]
    living = evidence(("b", 1), ("c", 302 * SECOND))
    assert [fault.kind for fault in takeover_faults(living, cut_at(300.5))] == ["false_takeovers"]


def test_a_task_that_was_taken_from_a_living_worker_is_found() -> None:
    """P5: run again by another although its process lived; after a kill that is as it should be."""
    task: Row = {"id": "k", "call_id": "m1", "attempt": 2, "error": None, "ended_at": KILLED + SECOND}
    for process, kinds in ((1, []), (2, ["false_takeovers"])):
        found = evidence(tasks=[task], ledger=[Entry("m1", "key", "scan", "before", process, 1)])
        assert [fault.kind for fault in takeover_faults(found, LIVES)] == kinds


def test_a_worker_that_was_taken_for_dead_is_found() -> None:
    """P5: a second name means that others gave away what it ran; only the frozen one may need it."""
    names = {**LIVES.names, "c2": (3, 213 * SECOND)}
    assert list(takeover_faults(evidence(), Lives(names, LIVES.deaths, LIVES.freezes))) == []
    names["b2"] = (2, 50 * SECOND)
    [fault] = takeover_faults(evidence(), Lives(names, LIVES.deaths, LIVES.freezes))
    assert fault.kind == "false_takeovers"


def test_a_reader_that_heard_of_an_event_much_too_late_is_found() -> None:
    """P4: it hung, although it has everything in the end."""
    found = evidence()
    found.readers = [{"reader": "r", "session": "s", "lags": [0.1, 70.0]}, {"reader": "q", "session": "s", "lags": []}]
    assert [fault.kind for fault in hanging_faults(found)] == ["hanging"]


def test_a_recovery_counts_as_undisturbed_when_only_its_kill_happened() -> None:
    """The report tells the two apart: a restart of the database in between delays what a kill began."""
    kill = (KILLED - 1, KILLED + SECOND // 2)
    assert is_alone(KILLED, 1.5, [kill, (KILLED + 2 * SECOND, KILLED + 3 * SECOND), (0, SECOND)])
    assert not is_alone(KILLED, 1.5, [kill, (KILLED + SECOND, KILLED + 3 * SECOND)])
    assert not is_alone(KILLED, 1.5, [kill, (KILLED - 20 * SECOND, KILLED + SECOND)])
    assert is_alone(KILLED, 1.5, [kill, (KILLED - 2 * SECOND, KILLED - SECOND)])
