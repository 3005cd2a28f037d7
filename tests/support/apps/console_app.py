"""For the console: the model says what the user's words ask for. A gate named in them is opened by a file beside the
database, so that a server that was killed and started again finds it open."""

import asyncio
import base64
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, ToolReturnPart, UserPromptPart

from outlast import Outlast, Settings, artifact, ask, connection, hints, output, progress
from outlast.testing import ScriptedModel, Step, call, error, gate, last_user_text, reasoning, text

HOSTILE = """# Look

<script>alert(1)</script> <img src=x onerror=alert(2)> <iframe src="https://evil.example/f"></iframe>

[click](javascript:alert(3)) [data](data:text/html,<script>alert(4)</script>) ![spy](https://evil.example/pixel.png)

| a | b |
|---|---|
| 1 | <b onclick="alert(5)">2</b> |

- [ ] a box

```python
print("<script>alert(6)</script>")
```
"""


COLOURS = {"type": "string", "enum": ["red", "blue"]}


class Report(BaseModel):
    city: str
    birds: int


class Sighting(Report):
    seen_by: list[str]


async def _open(name: str) -> None:
    file = Path(f"{name}.open")
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - opened by another process; a look takes no time
        await asyncio.sleep(0.02)


PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAbUlEQVR42hXNQRUAUQhC0QlmCEMY4oUwBCEIQazxs70H+Io0GQJZImIS8hVu"
    "PBi8WNg4+ECNBoEWCRkFHWyzw8IuK9Zs2AMahpfDK97oHR5MM/NolhFjJsxBNz2v1kuLNh36oJoabrKWEmUq1A9gkV8BZmuYxAAAAABJRU5E"
    "rkJggg=="
)
PAGE = b"<h1>Levels</h1><script>document.title = 'taken'</script>"


def _images(messages: list[ModelMessage]) -> int:
    """In the message that was sent last."""
    parts = [part for part in messages[-1].parts if isinstance(part, UserPromptPart)]
    content = [each for part in parts if not isinstance(part.content, str) for each in part.content]
    return sum(isinstance(each, BinaryContent) and each.is_image for each in content)


def _reply(messages: list[ModelMessage]) -> Step:
    last = messages[-1].parts[-1]
    said = last_user_text(messages) or ""
    word, _, name = said.partition("\n\n<attached_files>")[0].partition(" ")
    if "has a question" in said:
        return "Somebody must say."
    if isinstance(last, ToolReturnPart):
        return "It goes on." if "task_id" in str(last.content) else f"Seen: {last.content}"
    match word:
        case "hello":
            return [reasoning("Hm."), text("Hello there.", chunk=4)]
        case "slow":
            return [text("One "), gate(lambda: _open(name)), text("two.")]
        case "survey":
            return call("survey", name=name)
        case "charge":
            return [call("charge", name=name), call("look", name=name)]
        case "flood":
            return call("flood")
        case "pay":
            return call("pay", euros=100)
        case "report":
            return call("final_result", city="Oslo", birds=12)
        case "paint":
            return call("paint")
        case "christen":
            return call("christen")
        case "issues":
            return call("issues")
        case "find":
            return call("find", name=name)
        case "delegate":
            return call("run_sub_session", prompt=f"survey {name}", wait_seconds=0)
        case "deep" if name == "2":
            return call("paint")
        case "deep":
            return call("run_sub_session", prompt=f"deep {int(name) + 1}", wait_seconds=0)
        case "hostile":
            return text(HOSTILE, chunk=40)
        case "draw":
            return call("draw")
        case "images":
            return f"I was sent {_images(messages)} images."
        case "fail":
            return error(400)
        case _:
            return "The work is done." if "background" in said and "task" in said else f"You said {said}."


def _reported(_: list[ModelMessage]) -> Step:
    return call("final_result", city="Oslo", birds=12, seen_by=["Ada", "Bob"])


def _make() -> Outlast[None, Any]:
    agent = Agent(ScriptedModel(_reply), name="clerk", output_type=[str, Report])

    @agent.tool_plain(metadata=hints(budget=0.05))
    async def survey(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a river, for as long as its gate is closed."""
        output("At the first bridge.\n")
        progress(1, 4, unit="places", label="upstream")
        await _open(name)
        return "Twelve birds."

    @agent.tool_plain(metadata=hints(budget=None))
    async def charge(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Take money, once its gate is open."""
        await _open(name)
        return "charged"

    @agent.tool_plain(metadata=hints(budget=None, read_only=True))
    async def look(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """See, once its gate is open."""
        await _open(name)
        return "seen"

    @agent.tool_plain(metadata=hints(budget=0.05))
    async def flood() -> str:  # pyright: ignore[reportUnusedFunction]
        """Put out a megabyte in colours."""
        output("The first line.\n")
        for number in range(100):
            output(
                "".join(
                    f"\x1b[32mok\x1b[0m line {number * 200 + each} of very many, in colours\n" for each in range(200)
                )
            )
            await asyncio.sleep(0.01)
        output("\x1b[31mThe last line.\x1b[0m\n")
        return "All said."

    @agent.tool_plain(metadata=hints(budget=0.05))
    async def draw() -> str:  # pyright: ignore[reportUnusedFunction]
        """Make files, in the background."""
        await asyncio.sleep(0.1)
        artifact("levels.png", PICTURE, "image/png")
        artifact("levels.csv", b"place,metres\nbridge,2\n", "text/csv")
        artifact("levels.html", PAGE, "text/html")
        artifact("levels.bin", bytes(range(256)), "application/octet-stream")
        return "drawn"

    @agent.tool_plain(metadata=hints(approve=True))
    async def pay(euros: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Pay somebody."""
        return f"paid {euros}"

    @agent.tool_plain
    async def paint() -> str:  # pyright: ignore[reportUnusedFunction]
        """Paint it in the colour that somebody says."""
        return f"painted {await ask('Which colour?', COLOURS)}"

    @agent.tool_plain
    async def christen() -> str:  # pyright: ignore[reportUnusedFunction]
        """Give it the name that somebody says."""
        return f"called {await ask('What is its name?')}"

    @agent.tool_plain(metadata=hints(idempotent=True))
    async def issues() -> str:  # pyright: ignore[reportUnusedFunction]
        """What is asked for at GitHub, which needs a credential."""
        return f"read with {len(await connection('github'))} characters"

    @agent.tool_plain(metadata=hints(narrate={"running": "Looking for {name}", "done": "Found {name}"}))
    async def find(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look for somebody."""
        return f"{name} is here"

    settings = Settings(durability="normal", max_requests_per_minute=10**6, max_open_requests_per_owner=10**4)
    surveyor = Agent(ScriptedModel(_reported), name="surveyor", output_type=Sighting)
    agents: dict[str, Agent[Any, Any]] = {"clerk": agent, "surveyor": surveyor}
    return Outlast(agents, database="console.db", settings=settings)


app = _make()
