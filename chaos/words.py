"""The words that clients, agent and judge share: tokens, plans, and which tools may run twice."""

import re
from collections.abc import Sequence

RUNS_ONCE = frozenset({"note", "slow", "thread", "fail"})
MAY_RUN_AGAIN = frozenset({"again", "look"})
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
)
"""What a plan is made of. Tools joined by `+` are called in parallel."""

_PLAN = re.compile(r"\[(\w+):([\w+,]*)\]")


def message(token: str, steps: Sequence[str]) -> str:
    """What a client sends: `[m7:note,slow+again]`."""
    return f"[{token}:{','.join(steps)}]"


def plans_in(content: str) -> list[tuple[str, list[str]]]:
    """Every token in a prompt with its steps."""
    return [(token, [step for step in plan.split(",") if step]) for token, plan in _PLAN.findall(content)]


def result_of(call_id: str) -> str:
    """What a tool returns once its effect is in the ledger."""
    return f"{call_id} took effect"
