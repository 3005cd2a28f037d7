"""The tools that are set going on purpose, that ask, that wait for an approval, and whose work is done elsewhere."""

import asyncio

from pydantic_ai import Agent, RunContext

import outlast
from chaos.effects import Effects
from chaos.words import prompt_of, told_by


def add_work_tools(agent: Agent[object, str], effects: Effects) -> None:
    """Of each kind one that is never run twice, and one that may be; an approval is about the first sort alone."""

    async def errand(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        await asyncio.sleep(0.2)
        return effects.finish(context)

    async def ask(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        answer = await outlast.ask(prompt_of(name))
        effects.finish(context)
        return told_by(context.tool_call_id or "", answer)

    async def pay(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        return effects.finish(context)

    async def ship(context: RunContext[object], name: str) -> str:
        effects.begin(context)
        async with outlast.external(deadline=60, title=name) as operation:
            effects.ledger.order(operation.task_id, operation.token, is_new=operation.is_new)
        return effects.finish(context)

    agent.tool(errand)
    agent.tool(name="chore", metadata=outlast.hints(idempotent=True))(errand)
    agent.tool(ask)
    agent.tool(name="wonder", metadata=outlast.hints(idempotent=True))(ask)
    agent.tool(metadata=outlast.hints(approve=True))(pay)
    agent.tool(ship)
    agent.tool(name="courier", metadata=outlast.hints(idempotent=True))(ship)
