"""What `outlast.testing` does in the place of people; the guide shows each of them in use."""

import pytest
from pydantic_ai import Tool

from outlast import hints
from outlast.testing import approve, call, waiting
from tests.support.turns.runtime import Runtime, scripted


async def test_what_does_not_come_is_told_with_what_there_is(runtime: Runtime) -> None:
    """A13: a test that waits for the wrong thing fails with words."""

    async def pay(amount: int) -> str:
        return f"paid {amount}"

    asked = Tool(pay, metadata=hints(approve=True, destructive=True))
    async with runtime(scripted(call("pay", amount=1), "I ask.", "Paid."), tools=[asked]) as outlast:
        with pytest.raises(AssertionError, match=r"No task waits for a question.*Tasks: none"):
            await waiting(outlast.tasks, "question", seconds=0)
        session = await outlast.sessions.create()
        await session.send("pay")
        task = await waiting(outlast.tasks, "approval", tool="pay", session_id=session.id)
        assert task.request is not None
        assert "cannot be undone" in task.request.prompt
        with pytest.raises(AssertionError, match=r"of 'other' waits for an approval.*pay \(awaiting_input\)"):
            await approve(outlast.tasks, tool="other", seconds=0)
        assert (await approve(outlast.tasks, tool="pay")).result == "paid 1"
        await session.settled()
