"""The words that clients, agent and judge share: tokens, plans, and which tools may run twice."""

import re
from collections.abc import Sequence

MAY_RUN_AGAIN = frozenset({"again", "look", "scan", "guard", "patrol"})
OUTLASTS_ITS_BUDGET = frozenset({"survey", "scan", "vigil", "patrol"})
CHECK = "check_background"
"""The control tool; plans say `check` (wait for the newest tasks), `list` and `quit` (cancel the newest)."""

VIGIL_SECONDS = 2.0
STEPS = (
    "note",
    "note",
    "slow",
    "again",
    "look",
    "talk",
    "flaky",
    "fail",
    "thread",
    "note+note",
    "note+again",
    "slow+note+look",
    "again+slow",
    "thread+note",
    "survey",
    "scan",
    "survey+note",
    "scan+slow",
    "vigil",
    "list",
    "survey,check",
    "scan+survey,check+list",
    "vigil,quit",
)
"""What a plan is made of. Tools joined by `+` are called in parallel, steps joined by `,` one after the other."""

_PLAN = re.compile(r"\[(\w+):([\w+,]*)\]")


def message(token: str, steps: Sequence[str]) -> str:
    """What a client sends: `[m7:note,slow+again]`."""
    return f"[{token}:{','.join(steps)}]"


def plans_in(content: str) -> list[tuple[str, list[str]]]:
    """Every token in a prompt with its steps."""
    return [(token, [step for step in plan.split(",") if step]) for token, plan in _PLAN.findall(content)]


def wake_of(task_id: str) -> str:
    """How the wake of a task begins."""
    return f"Background task {task_id} ("


def settlement_of(task_id: str) -> str:
    """How the word of a person about a task begins."""
    return f"Ada says of task {task_id} ("


def result_of(call_id: str) -> str:
    """What a tool returns once its effect is in the ledger."""
    return f"{call_id} took effect"
