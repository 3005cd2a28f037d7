"""The words that clients, agent and judge share: tokens, plans, and which tools may run twice."""

import re
from collections.abc import Sequence

MAY_RUN_AGAIN = frozenset({"again", "look", "scan", "guard", "patrol", "chore", "wonder", "courier"})
OUTLASTS_ITS_BUDGET = frozenset({"survey", "scan", "vigil", "patrol", "ask", "wonder", "pay"})
"""Those that become tasks: past their budget, or because they ask somebody."""
CHECK = "check_background"
"""The control tool; plans say `check` (wait for the newest tasks), `list` and `quit` (cancel the newest)."""
SPAWN, CHILD = "spawn_background", "run_sub_session"
CONTROLS = frozenset({CHECK, SPAWN, CHILD})
SPAWNED = {"spawn": "errand", "chores": "chore"}
"""The words that set a tool going, and the tools."""
CHILDREN = {"child": "note", "son": "look", "family": "child", "kin": "cousin", "cousin": "ask"}
"""The words that give work to a sub-session, and what it is to do. The parent waits for a `son`."""
ASKING = frozenset({"ask", "wonder"})
OUTSIDE = frozenset({"ship", "courier"})
"""Tools whose work goes on elsewhere."""

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

WORK_STEPS = (
    "spawn+spawn+spawn",
    "chores+note",
    "spawn,check",
    "child",
    "son",
    "family",
    "kin",
    "ask",
    "wonder",
    "ask+pay",
    "pay",
    "ship",
    "courier",
)
"""The same for what is set going on purpose, or needs somebody: where there are people to answer."""

_PLAN = re.compile(r"\[(\w+):([\w+,]*)\]")
_TITLE = re.compile(r"(Background|of) task \w+ \([^)]*\)")
"""Work that was given to a sub-session has its plan for a title: to others that is no plan."""


def plan_of(token: str, steps: Sequence[str]) -> str:
    """What a client sends: `[m7:note,slow+again]`."""
    return f"[{token}:{','.join(steps)}]"


def plans_in(content: str) -> list[tuple[str, list[str]]]:
    """Every token in a prompt with its steps."""
    return [
        (token, [step for step in plan.split(",") if step]) for token, plan in _PLAN.findall(_TITLE.sub("", content))
    ]


def child_token(name: str) -> str:
    """The token of what a call gives to a sub-session."""
    return name.replace(".", "_")


def prompt_of(name: str) -> str:
    """What a tool asks whoever answers."""
    return f"What of {name}?"


def told_by(call_id: str, answer: str) -> str:
    """What a tool returns that has asked."""
    return f"{result_of(call_id)}: {answer}"


def wake_of(task_id: str) -> str:
    """How the wake of a task begins."""
    return f"Background task {task_id} ("


def notices_of(task_id: str) -> re.Pattern[str]:
    """Words that begin like a wake and tell that the task waits for somebody."""
    return re.compile(rf"{re.escape(wake_of(task_id))}[^)]*\) waits for")


def settlement_of(task_id: str) -> str:
    """How the word of a person about a task begins."""
    return f"Ada says of task {task_id} ("


def result_of(call_id: str) -> str:
    """What a tool returns once its effect is in the ledger."""
    return f"{call_id} took effect"
