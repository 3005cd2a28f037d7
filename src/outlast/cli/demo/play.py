"""`outlast demo --play`: an agent is killed in the middle of a sentence, and goes on; a slow tool outlasts its turn.

What waits for a person's word outlives its process too.

Everything shown comes from real events of real processes; only the model is scripted, so no key is needed.
"""

import asyncio
import signal
import tempfile
from pathlib import Path
from typing import Any

import typer

from outlast.cli.demo.agent import APPROVE, ASKING_TOOL, FAST, TOOL, Gates, Paths, make_agent
from outlast.cli.demo.narration import Narrator, event_line, narrating
from outlast.cli.demo.process import AgentProcess
from outlast.cli.demo.watcher import Watcher
from outlast.cli.terminal.console import console as make_console
from outlast.errors import OutlastError
from outlast.events.event import Event
from outlast.runtime import Outlast

FIRST_MESSAGE = "Please pay the invoice from Nordlys: 1,240 EUR."
STEERING_MESSAGE = "And when will it arrive?"
SLOW_MESSAGE = "Was any invoice of this year paid twice?"
MEANWHILE_MESSAGE = "Meanwhile: which one was the largest?"
CLAIM_MESSAGE = "Then claim that back from Fjord AS."
KILL_AFTER = 60
INTERRUPTED = 130


def show(*, is_fast: bool) -> None:
    """Play it on this terminal. Needs no API key, and leaves nothing behind."""
    console = make_console()
    handler_before = signal.signal(signal.SIGTERM, _exit)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="outlast-demo-") as folder,
            narrating(console, is_fast=is_fast) as narrator,
        ):
            play(narrator, Path(folder), is_fast=is_fast)
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left behind.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, handler_before)


def play(narrator: Narrator, folder: Path, *, is_fast: bool) -> None:
    """The whole play: a kill, a restart, a proof, a call in the background, and one that waits for a person.

    Raises if what it claims is not so.
    """
    watcher = Watcher(narrator)
    narrator.title("An agent pays an invoice, and its process is killed")
    _until_killed(narrator, watcher, folder, is_fast=is_fast)
    narrator.pause(1.0)
    narrator.title("A new process, the same file")
    _after_restart(narrator, watcher, folder, is_fast=is_fast)
    narrator.pause(1.0)
    narrator.title("What is on disk")
    _prove(narrator, Paths(folder), watcher.words)
    narrator.pause(1.5)
    narrator.title("A tool that takes longer than a turn should wait")
    _in_the_background(narrator, watcher, folder, is_fast=is_fast)
    narrator.pause(1.5)
    narrator.title("A tool that needs a person's word, and its process is killed")
    _until_approved(narrator, watcher, folder, is_fast=is_fast)


def _until_killed(narrator: Narrator, watcher: Watcher, folder: Path, *, is_fast: bool) -> None:
    """A message comes while the tool runs; the process is killed in the middle of the answer."""
    with AgentProcess(folder, after=0, is_fast=is_fast, is_stalling=True) as process:
        narrator.line("start", f"process {process.pid} runs the agent")
        process.send(FIRST_MESSAGE)
        for event in process.events():
            watcher.show(event)
            if event.type == "call.started":
                process.send(STEERING_MESSAGE)
            if watcher.has_result and len(watcher.words) >= KILL_AFTER:
                process.kill()
                watcher.cut_off()
                narrator.line("✗", f"kill -9 {process.pid}")
                narrator.line("", "The process is gone in the middle of a sentence. It could save nothing.")
                return
    raise OutlastError("The agent's process ended before it could be killed.")


def _after_restart(narrator: Narrator, watcher: Watcher, folder: Path, *, is_fast: bool) -> None:
    """From the last commit to the end of the turn."""
    position = watcher.position
    with AgentProcess(folder, after=position, is_fast=is_fast, is_stalling=False) as process:
        narrator.line("start", f"process {process.pid} opens the file; its reader asks for what came after #{position}")
        for event in process.events():
            if event.type == "call.started":
                raise OutlastError("The tool was started a second time.")
            watcher.show(event)
            if event.type == "turn.completed":
                process.finish()


def _in_the_background(narrator: Narrator, watcher: Watcher, folder: Path, *, is_fast: bool) -> None:
    """A call is parked, a question is answered meanwhile, and the end of the call wakes the conversation."""
    ends: list[str] = []
    with AgentProcess(folder, after=watcher.position, is_fast=is_fast, is_stalling=False) as process:
        process.send(SLOW_MESSAGE)
        for event in process.events():
            watcher.show(event)
            if event.type == "turn.completed":
                ends.append(watcher.words)
                if len(ends) == 1:
                    process.send(MEANWHILE_MESSAGE)
                elif len(ends) == 3:
                    process.finish()
    if len(ends) != 3:
        raise OutlastError(f"There should be three turns: one that parks, an answer, and a woken one: {ends}")
    narrator.line("", "Nobody waited for the tool, and nobody had to ask for its result.")


def _until_approved(narrator: Narrator, watcher: Watcher, folder: Path, *, is_fast: bool) -> None:
    """A call waits for a person, its process is killed, and the next one runs it when the person has decided."""
    with AgentProcess(folder, after=watcher.position, is_fast=is_fast, is_stalling=False) as process:
        process.send(CLAIM_MESSAGE)
        for event in process.events():
            watcher.show(event)
            if event.type == "turn.completed":
                process.kill()
                narrator.line("✗", f"kill -9 {process.pid}")
                narrator.line("", "What it waited for is on disk. Nobody need be there for that to wait on.")
    narrator.pause(1.0)
    with AgentProcess(folder, after=watcher.position, is_fast=is_fast, is_stalling=False) as process:
        narrator.line("start", f"process {process.pid} opens the file, and a person approves")
        process.send(APPROVE)
        for event in process.events():
            watcher.show(event)
            if event.type == "turn.completed":
                process.finish()
    claims = [each for each in Paths(folder).ledger.read_text().splitlines() if each.startswith("claimed")]
    opened, asked = asyncio.run(_asked(Paths(folder)))
    if (len(claims), opened, asked) != (1, 1, 1):
        raise OutlastError(f"There should be one call, one question and one claim: {asked}, {opened}, {claims}")
    narrator.line("ledger", claims[0])
    narrator.line("", f"{ASKING_TOOL} was asked for once, a person was asked once, and it ran once.")


async def _asked(paths: Paths) -> tuple[int, int]:
    """How often a person was asked in all, and how often the model has asked for the tool."""
    async with Outlast(make_agent(paths, FAST, Gates(), is_stalling=False), database=paths.database) as outlast:
        session = (await outlast.sessions.list(limit=1))[0]
        async with session.events(follow=False) as stream:
            opened = sum([event.type == "request.opened" async for event in stream])
        return opened, str(await session.history()).count(f"ToolCallPart(tool_name={ASKING_TOOL!r}")


def _prove(narrator: Narrator, paths: Paths, answer: str) -> None:
    """The ledger and the log, read by this process: a third one."""
    payments = paths.ledger.read_text().splitlines()
    if len(payments) != 1:
        raise OutlastError(f"The ledger should have one line: {payments}")
    narrator.line("", f"{paths.ledger.name}, written by the tool, has one line:")
    narrator.line("ledger", payments[0])
    narrator.line("", "The log around the crash:")
    log, said = asyncio.run(_read(paths))
    for each in log:
        narrator.line(f"#{each.number}", event_line(each.type, each.data))
    if said != answer:
        raise OutlastError(f"The stored answer is not the one that was shown: {said!r}")
    narrator.line("answer", said)
    narrator.line("", f"{TOOL} ran once, both messages were answered, and no half sentence is left.")


async def _read(paths: Paths) -> tuple[list[Event], str]:
    """The events from the call on, without the pieces of text, and what the turn came to."""
    agent = make_agent(paths, FAST, Gates(), is_stalling=False)
    async with Outlast(agent, database=paths.database) as outlast:
        session = (await outlast.sessions.list(limit=1))[0]
        async with session.events(follow=False) as stream:
            events = [event async for event in stream if not event.type.startswith("part.")]
        outcome = await session.settled()
    first = next(at for at, event in enumerate(events) if event.type == "call.started")
    return events[first:], outcome.text if outcome is not None else ""


def _exit(*_: Any) -> None:
    raise SystemExit(128 + signal.SIGTERM)
