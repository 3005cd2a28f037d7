"""The public surface is small, and changes to it are made on purpose."""

import outlast
import outlast.testing

NAMES = [
    "Attachment",
    "Binding",
    "BoundResource",
    "Client",
    "Context",
    "Event",
    "Outcome",
    "Outlast",
    "OutlastError",
    "Permissions",
    "Schedule",
    "Sent",
    "Session",
    "Settings",
    "Task",
    "Turn",
    "TurnContext",
    "Verdict",
    "artifact",
    "ask",
    "ask_sync",
    "connection",
    "connection_sync",
    "cost",
    "external",
    "files",
    "hints",
    "idempotency_key",
    "output",
    "progress",
    "secret",
]

TESTING_NAMES = [
    "ManualClock",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedModel",
    "Step",
    "Steps",
    "answer",
    "approve",
    "call",
    "calls",
    "complete",
    "connect",
    "delay",
    "error",
    "gate",
    "last_user_text",
    "next_fire",
    "reasoning",
    "refuse",
    "reply",
    "text",
    "texts_seen",
    "tool_returns",
    "waiting",
]


def test_the_public_names_are_these() -> None:
    """K5: whatever is not listed may change without notice."""
    assert outlast.__all__ == NAMES


def test_the_public_names_of_testing_are_these() -> None:
    """K5: users test their own agents with these."""
    assert outlast.testing.__all__ == TESTING_NAMES


def test_every_public_name_is_there() -> None:
    """K5: a list that promises what is missing breaks `from outlast import *`."""
    for module in (outlast, outlast.testing):
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.{name} is listed but missing"
