"""Who is dead: decided from what was seen again and again, and never in the moments in which everybody looks dead."""

import os
import subprocess
from collections.abc import Sequence

import pytest

from outlast.engines.process import is_gone, place
from outlast.engines.sweep import FROZEN_SECONDS, GRACE_SECONDS, LOOK_SECONDS, QUIET_SECONDS, Judge
from outlast.ids import WorkerId
from outlast.store.repositories.workers import Roll, Sighting

LONG_UP = 1_000.0


def seen(
    name: str = "wrk_a", *, silent: float = 0.5, is_connected: bool = True, place: str = "elsewhere", pid: int = 1
) -> Sighting:
    return Sighting(WorkerId(name), place, pid, 1, silent, is_connected)


def judged(looks: Sequence[tuple[float, Sighting]], *, uptime: float = LONG_UP) -> list[list[str]]:
    judge = Judge()
    return [[each.id for each in judge.dead(Roll([sighting], uptime), at)] for at, sighting in looks]


def missing_for(seconds: float, *, start: float = 100.0) -> list[tuple[float, Sighting]]:
    count = int(seconds / LOOK_SECONDS) + 1
    return [(start + at * LOOK_SECONDS, seen(is_connected=False)) for at in range(count)]


def test_a_lock_that_is_free_for_the_grace_is_a_death() -> None:
    """DESIGN 8: kill -9 frees the lock, and a second later the work goes on elsewhere."""
    *before, last = judged(missing_for(GRACE_SECONDS))
    assert last == ["wrk_a"]
    assert not any(before)


def test_the_end_of_a_grace_is_looked_for_when_it_comes() -> None:
    """P4: not up to a look later; and nobody looks more often than that because of one that is dead already."""
    judge = Judge()
    assert judge.wait(100.0) == LOOK_SECONDS
    for at, expected in ((100.0, LOOK_SECONDS), (100.9, 0.1), (100.999, 0.01), (101.5, LOOK_SECONDS)):
        judge.dead(Roll([seen(is_connected=False)], LONG_UP), at)
        assert judge.wait(at) == pytest.approx(expected)


def test_a_lock_that_comes_back_in_time_is_not() -> None:
    """P5: a connection that was cut is no death, however often."""
    cut = missing_for(GRACE_SECONDS - LOOK_SECONDS)
    back = (cut[-1][0] + LOOK_SECONDS, seen())
    again = missing_for(GRACE_SECONDS - LOOK_SECONDS, start=back[0] + LOOK_SECONDS)
    assert not any(judged([*cut, back, *again]))


def test_a_busy_worker_that_looks_seldom_still_notices() -> None:
    """P4: on a machine under load a look may take longer than the grace; the dead must be found all the same."""
    slow = [(100.0 + at * 1.5 * GRACE_SECONDS, seen(is_connected=False)) for at in range(3)]
    assert judged(slow) == [[], [], ["wrk_a"]]


def test_a_row_that_is_not_renewed_is_a_death_although_the_lock_is_held() -> None:
    """A frozen host keeps its sockets."""
    assert judged([(100.0, seen(silent=FROZEN_SECONDS - 1)), (100.25, seen(silent=FROZEN_SECONDS + 0.1))])[-1]


def test_nobody_is_dead_right_after_the_database_has_started() -> None:
    """Its start freed every lock, and nobody could renew anything while it was away."""
    looks = [(at, seen(silent=60.0, is_connected=False)) for at, _ in missing_for(GRACE_SECONDS)]
    assert not any(judged(looks, uptime=QUIET_SECONDS - 0.1))
    assert judged(looks, uptime=QUIET_SECONDS + 0.1)[-1]


def test_whoever_was_away_itself_looks_again_before_it_judges() -> None:
    """P5: a process that was frozen, perhaps with its whole machine, wakes up to old rows and old observations."""
    before = missing_for(GRACE_SECONDS / 2)
    woken = before[-1][0] + 60.0
    looks = [*before, *((woken + at * LOOK_SECONDS, seen(silent=60.0)) for at in range(8))]
    assert not any(judged(looks))
    late = [(woken + QUIET_SECONDS + at * LOOK_SECONDS, seen(silent=60.0)) for at in range(-8, 2)]
    assert judged([*looks, *late[0:]])[-1]


@pytest.mark.parametrize("uptime", [0.1, LONG_UP])
def test_a_process_of_this_machine_that_is_gone_is_dead_at_once(uptime: float) -> None:
    """P4: there is nothing to wait for, also right after a start of the database."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert judged([(100.0, seen(place=place(), pid=ended.pid))], uptime=uptime) == [["wrk_a"]]


def test_one_that_its_parent_has_not_buried_is_gone_too() -> None:
    ended = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(place(), ended.pid)
    finally:
        ended.wait()


def test_one_that_is_there_or_cannot_be_seen_is_not() -> None:
    """P5: another machine, or a container, may have a process of the same number, or none."""
    assert not is_gone(place(), os.getpid())
    assert not is_gone(place(), 1)
    assert not is_gone("elsewhere", 2**22 - 1)
    assert not is_gone(place().rpartition(" ")[0] + " pid:[1]", 2**22 - 1)


def test_who_was_not_seen_itself_calls_nobody_dead() -> None:
    """P5: nothing could be written for a while, or the database's clock has jumped: all look frozen, the looker too."""
    judge = Judge()
    me = WorkerId("wrk_me")

    def look(at: float, *, mine: float, other: float) -> list[str]:
        roll = Roll([seen(me, silent=mine), seen("wrk_other", silent=other)], LONG_UP)
        return [each.id for each in judge.dead(roll, at, me=me)]

    long = FROZEN_SECONDS + 1
    assert look(100.0, mine=long, other=long) == []
    assert look(100.25, mine=0.1, other=long) == [], "it has just been seen again, the other one perhaps not yet"
    assert look(101.0, mine=0.1, other=0.1) == []
    assert look(103.0, mine=0.1, other=0.1) == []
    assert look(104.0, mine=0.1, other=long) == ["wrk_other"]
