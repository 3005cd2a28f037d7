"""The judge of `make chaos-deploy` can fail: each thing it looks for is a fault when it is not so."""

from typing import Any

from chaos.deploy.judge import NOT_THERE, exit_faults, rename_faults, wait_faults
from chaos.deploy.names import KEPT, REMOVED
from chaos.evidence import Evidence, LogEvent, SessionRows
from chaos.ledger import Entry
from chaos.task_ends import UNKNOWN

TRUE_WAIT = {"session": "s", "state": "queued", "turn_state": "queued", "no_worker_for": REMOVED}
LEFT = {"name": "old worker", "code": 0, "expected": 0, "words": "", "said": "Leaving"}


def test_a_turn_that_waits_for_nobody_and_does_not_say_so_is_a_fault() -> None:
    """DESIGN 8: what nobody has waits, and says for what."""
    assert [each.kind for each in wait_faults([TRUE_WAIT])] == []
    for untrue in ({"state": "running"}, {"turn_state": "running"}, {"no_worker_for": None}):
        assert [each.kind for each in wait_faults([{**TRUE_WAIT, **untrue}])] == ["untrue_waits"]
    assert [each.kind for each in wait_faults([])] == ["untrue_waits"], "a run in which nothing waited shows nothing"


def test_a_process_that_does_not_leave_in_good_order_is_a_fault() -> None:
    """DESIGN 8: SIGTERM ends with 0; old code on a new schema is refused, and says why."""
    refused = {**LEFT, "code": 1, "expected": 1, "words": "schema 0003", "said": "The database has schema 0003, which"}
    assert list(exit_faults([LEFT, refused])) == []
    for wrong in ({**LEFT, "code": -9}, {**refused, "code": 0}, {**refused, "said": "Traceback"}):
        assert [each.kind for each in exit_faults([wrong])] == ["exits"]


OLD, NEW = 1, 2


def evidence_of(tool: str, told: str, *, runners: tuple[int, ...] = (OLD,)) -> Evidence:
    session = SessionRows({"agent": KEPT})
    call_id = f"{tool}.0"
    part = {"content": told if tool == "guard" else "background"}
    ended: dict[str, Any] = {"tool": tool, "call_id": call_id, "part": part}
    session.events.append(LogEvent(1, "call.ended", "turn", ended))
    if tool == "patrol":
        session.tasks.append({"call_id": call_id, "error": told})
    other = "patrol" if tool == "guard" else "guard"
    shown = {"tool": other, "call_id": f"{other}.0", "part": {"content": f"{UNKNOWN}, {NOT_THERE}"}}
    session.events.append(LogEvent(2, "call.ended", "turn", shown))
    lines = [Entry(call_id, "key", tool, "before", each, 0) for each in runners]
    lines.append(Entry(f"{other}.0", "key", other, "before", OLD, 0))
    return Evidence({"s": session}, lines, [], [], [], {})


def test_an_open_call_of_a_renamed_tool_must_be_told_and_not_run_again() -> None:
    """P2: under its old name nobody can run it; whether it took effect nobody knows."""
    for told in (evidence_of("guard", UNKNOWN), evidence_of("patrol", NOT_THERE)):
        assert list(rename_faults(told, {OLD})) == []
    for untold in (
        evidence_of("guard", "it is done"),
        evidence_of("patrol", "None"),
        evidence_of("guard", UNKNOWN, runners=(OLD, NEW)),
        evidence_of("guard", UNKNOWN, runners=()),
    ):
        assert [each.kind for each in rename_faults(untold, {OLD})] == ["untold"]


def test_a_deploy_without_open_calls_shows_nothing() -> None:
    """A run that proves nothing must not pass."""
    faults = list(rename_faults(Evidence({}, [], [], [], [], {}), {OLD}))
    assert [each.kind for each in faults] == ["untold", "untold"]
