"""A client: it talks to one session after another and writes down what it was promised."""

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from chaos.link import Link, Refused
from chaos.reading import Reader, Readers
from chaos.words import STEPS, WORK_STEPS, plan_of

_FLOWS = (
    "alone",
    "steer",
    "queue",
    "interrupt",
    "nudge",
    "stop",
    "stop+resume",
    "stop+send",
    "stop+retry",
    "many",
    "cancel",
    "schedule",
    "schedule+pause",
    "schedule+edit",
    "schedule+unschedule",
)
_LEADS_TO = {
    "hold": "stop",
    "stop": "stop+resume",
    "resume": "stop+resume",
    "retry": "stop+retry",
    "nudge": "nudge",
    "wake": "alone",
    "withdraw": "alone",
    "cancel": "cancel",
    "cancel.end": "cancel",
    "accept": "many",
    "deliver": "many",
    "fire": "schedule",
}
"""The flow that brings a worker to a place."""

_PLANS_FOR = {
    "drop": ["flaky"],
    "request": ["note+slow"],  # the end of the quick one is committed, that of the other goes with the request
    "fold": ["talk", "talk", "note", "talk"],
    "park": ["survey"],
    "task.end": ["survey+scan"],
    "wake": ["survey"],
    "withdraw": ["survey+scan", "check"],
    "settle_task": ["vigil"],
    "task.claim": ["scan", "slow", "scan"],
    "spawn": ["spawn+chores"],
    "admit": ["spawn+spawn+chores+spawn"],
    "child.start": ["child"],
    "child.end": ["son+child"],
    "reply": ["ask+wonder"],
    "decide": ["pay+pay"],
    "complete": ["ship+courier"],
}
"""What is asked for when a worker is to die at a place; at times other steps follow."""


class Record:
    """The clients' memory: every answer, written when it came."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a")

    def write(self, **line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class Client:
    """Does one thing after another, some of it while the session is busy."""

    link: Link
    readers: Readers
    record: Record
    chance: random.Random
    name: str
    numbers: "count[int]" = field(default_factory=count)
    reader: Reader = field(init=False)

    async def run(self) -> None:
        """Until the round says that it is over."""
        while not self.link.is_over:
            session_id = await self.link.ask("create")
            self.reader = self.readers.add(session_id)
            if self.chance.random() < 0.5:
                self.readers.add(session_id, pause=0.03)
            for _ in range(self.chance.randint(1, 4)):
                if not self.link.is_over:
                    await self._flow()
                if self.link.wanted == "create":
                    break

    async def _flow(self) -> None:
        wanted = self.link.wanted or ""
        flow = self.chance.choice(_FLOWS)
        if self.chance.random() < 0.6:
            flow = _LEADS_TO.get(wanted, flow)
        if self.reader.unknown_tasks and (wanted == "settle_task" or self.chance.random() < 0.3):
            await self._settle(self.reader.unknown_tasks.pop())
        await self._send("steer", self._steps(["vigil"] if flow == "cancel" else _PLANS_FOR.get(wanted, [])))
        if flow != "many":
            await _within(1.0, self.reader.running)
        await self._pass(0.25)
        match flow.split("+"):
            case ["alone"]:
                await self._pass(0.8)
            case ["steer" | "queue" | "interrupt" as mode]:
                await self._send(mode, self._steps())
            case ["nudge"]:
                await self._wake()
            case ["cancel"]:
                await self._cancel()
            case ["schedule", *then]:
                await self._schedule(then)
            case ["many"]:
                for mode in ("queue", "steer", "queue", "wake"):
                    await (self._wake() if mode == "wake" else self._send(mode, self._steps()[:1]))
                    await self._pass(0.05)
            case ["stop", *then]:
                await self._stop(then)
            case _:
                raise AssertionError(flow)
        await _within(self.chance.choice((0.0, 3.0, 6.0)), self.reader.idle)

    async def _stop(self, then: Sequence[str]) -> None:
        if self.chance.random() < 0.5:
            await self._send("queue", self._steps()[:1])
        await self._ask("stop")
        await self._pass(0.3)
        if self.chance.random() < 0.3:
            await self._wake()
        for op in then:
            await (self._send("steer", self._steps()) if op == "send" else self._ask(op))

    async def _schedule(self, then: Sequence[str]) -> None:
        """Something to be said or done in a second, perhaps changed in the instant in which it is due."""
        token, tool = self._token("t"), self.chance.choice((None, None, "note", "again", "minute"))
        what = {"text": plan_of(token, self._steps()[:1])} if tool is None else {"tool": tool}
        made = await self._ask("schedule", token=token, **what, key=token)
        for op in then if made is not None and tool != "minute" else ():
            await asyncio.sleep(1.0 + self.chance.uniform(-0.1, 0.1))
            if op == "unschedule":
                self.record.write(op=op, session=self.reader.session_id, token=token)
            await self._ask(op, token=token, schedule=made)
            if op == "pause" and self.chance.random() < 0.5:
                await self._ask("unpause", token=token, schedule=made)
        await self._pass(1.5)

    async def _cancel(self) -> None:
        """Cancel something that runs in the background, if anything does by now."""
        await _within(2.0, self.reader.parked)
        if self.reader.open_tasks:
            task_id = self.chance.choice(sorted(self.reader.open_tasks))
            await self._ask("cancel", token=task_id, task=task_id)

    async def _settle(self, task_id: str) -> None:
        await self._ask("settle_task", token=task_id, task=task_id)

    async def _send(self, mode: str, steps: Sequence[str]) -> None:
        token = self._token("m")
        await self._ask("send", token=token, text=plan_of(token, steps), mode=mode, key=token)

    async def _wake(self) -> None:
        token = self._token("w")
        await self._ask("wake", token=token, text=plan_of(token, self._steps()[:1]), key=token)

    async def _ask(self, op: str, **fields: Any) -> Any:
        """The answer; None when it was refused."""
        session_id = self.reader.session_id
        try:
            answer = await self.link.ask(op, session=session_id, **fields)
        except Refused as exc:
            self.record.write(op=op, session=session_id, token=fields.get("token"), refused=exc.code)
        else:
            self.record.write(op=op, session=session_id, token=fields.get("token"), answer=answer)
            return answer

    def _token(self, kind: str) -> str:
        return f"{kind}{self.name}x{next(self.numbers)}"

    def _steps(self, first: Sequence[str] = ()) -> list[str]:
        if first and self.chance.random() < 0.5:
            return list(first)
        return [*first, *self.chance.choices((*STEPS, *WORK_STEPS), k=self.chance.randint(1, 3))]

    async def _pass(self, most: float) -> None:
        """Let some time pass, as people do; often none."""
        if self.chance.random() < 0.7:
            await asyncio.sleep(self.chance.uniform(0, most))


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Wait for something that may not come, as the worker may be dead."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
