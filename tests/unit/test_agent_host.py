"""An agent's toolsets are opened once, by whoever asks first, for all who ask."""

import asyncio
from typing import Any, Self

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset

from outlast.agents.host import AgentHost


class Slow(FunctionToolset[None]):
    """Opens when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_open = asyncio.Event()
        self.opening = 0
        self.open = 0
        self.failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        self.opening += 1
        await self.may_open.wait()
        if self.failure is not None:
            raise self.failure
        self.open += 1
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        self.open -= 1
        return None


def host_of(toolset: Slow) -> AgentHost:
    return AgentHost(Agent(TestModel(), toolsets=[toolset]), None, {})


async def test_one_who_is_cancelled_while_it_opens_keeps_nobody_out() -> None:
    """P1: a turn that is stopped in its first moments must not close what the others use."""
    slow = Slow()
    host = host_of(slow)
    first, second = (asyncio.create_task(host.enter()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    assert not second.done()
    slow.may_open.set()
    await second
    await host.enter()
    assert (slow.opening, slow.open) == (1, 1)
    await host.close()
    assert slow.open == 0


@pytest.mark.parametrize("failure", [OSError("not yet"), asyncio.CancelledError()])
async def test_what_could_not_be_opened_is_opened_by_the_next(failure: BaseException) -> None:
    """P1: whoever waits is told, also when a toolset cancels itself."""
    slow = Slow()
    slow.may_open.set()
    slow.failure = failure
    host = host_of(slow)
    with pytest.raises((OSError, RuntimeError), match=r"not yet|its own opening"):
        await host.enter()
    slow.failure = None
    await host.enter()
    assert slow.open == 1
    await host.close()


async def test_what_hangs_while_it_opens_does_not_hold_up_the_end() -> None:
    """P6: nobody waits for a toolset that nobody needs any more."""
    slow = Slow()
    host = host_of(slow)
    entering = asyncio.create_task(host.enter())
    for _ in range(3):
        await asyncio.sleep(0)
    assert slow.opening
    entering.cancel()
    await asyncio.wait({entering})
    async with asyncio.timeout(60):
        await host.close()
    assert slow.open == 0
