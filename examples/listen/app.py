"""Observers: whatever is committed in this process is told to functions of yours, as it happens."""

import asyncio
from collections.abc import Sequence

from pydantic_ai import Agent

from outlast import Event, Outlast
from outlast.testing import ScriptedModel, call

model = ScriptedModel([call("weather", city="Oslo"), "Take a hat.", "You are welcome."])
agent = Agent(model, name="travel")


@agent.tool_plain
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: sunny"


app = Outlast(agent, database="listen.db")
news: asyncio.Queue[str] = asyncio.Queue()


def audit(events: Sequence[Event]) -> None:
    """Called on the event loop after each commit, in order: be quick, and hand on what takes time."""
    for event in events:
        if event.type == "call.ended":
            news.put_nowait(f"{event.data['tool']} ended: {event.data['outcome']}")
        elif event.type == "turn.completed":
            news.put_nowait(f"a turn has used {event.data['usage']['requests']} requests")


async def tell() -> None:
    """What takes time: posting to a chat room, say."""
    while True:
        print("observer:", await news.get())
        news.task_done()


async def main() -> None:
    app.listen(audit)
    telling = asyncio.create_task(tell(), name="tell")
    async with app as outlast:
        session = await outlast.sessions.create()
        for text in ("What should I wear in Oslo?", "Thanks!"):
            outcome = await session.ask(text)
            await news.join()
            print("agent:", outcome.text)
    telling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
