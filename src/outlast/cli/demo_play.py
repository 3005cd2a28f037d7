"""`outlast demo --play`: an agent is killed in the middle of a sentence, and goes on; a slow tool outlasts its turn.

Everything shown comes from real events of real processes; only the model is scripted, so no key is needed.
"""

import asyncio
import signal
import tempfile
from pathlib import Path
from typing import Any

import typer

from outlast.cli.console import console as make_console
from outlast.cli.demo_agent import FAST, TOOL, Gates, Paths, make_agent
from outlast.cli.demo_process import AgentProcess
from outlast.cli.demo_scene import Scene, event_line
from outlast.cli.play import Stage
from outlast.errors import OutlastError
from outlast.events.event import Event
from outlast.runtime import Outlast

FIRST_MESSAGE = "Please pay the invoice from Nordlys: 1,240 EUR."
STEERING_MESSAGE = "And when will it arrive?"
SLOW_MESSAGE = "Was any invoice of this year paid twice?"
MEANWHILE_MESSAGE = "Meanwhile: which one was the largest?"
KILL_AFTER = 60
INTERRUPTED = 130


def show(*, is_fast: bool) -> None:
    """Play it on this terminal. Needs no API key, and leaves nothing behind."""
    console = make_console()
    ended_before = signal.signal(signal.SIGTERM, _end)
    try:
        with tempfile.TemporaryDirectory(prefix="outlast-demo-") as folder:
            play(Stage(console, is_fast=is_fast), Path(folder), is_fast=is_fast)
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left behind.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, ended_before)


def play(stage: Stage, folder: Path, *, is_fast: bool) -> None:
    """The whole play in two acts, a proof and a third act. Raises if what it claims is not so."""
    stage.title("An agent pays an invoice, and its process is killed")
    position = _first_act(stage, folder, is_fast=is_fast)
    stage.pause(1.0)
    stage.title("A new process, the same file")
    position, answer = _second_act(stage, folder, position, is_fast=is_fast)
    stage.pause(1.0)
    stage.title("What is on disk")
    _prove(stage, Paths(folder), answer)
    stage.pause(1.5)
    stage.title("A tool that takes longer than a turn should wait")
    _third_act(stage, folder, position, is_fast=is_fast)


def _first_act(stage: Stage, folder: Path, *, is_fast: bool) -> int:
    """Up to the kill. Gives the number of the last event that was seen."""
    with (
        AgentProcess(folder, after=0, is_fast=is_fast, is_stalling=True) as process,
        Scene(stage) as scene,
    ):
        stage.line("start", f"process {process.pid} runs the agent")
        process.send(FIRST_MESSAGE)
        for event in process.events():
            scene.show(event)
            if event.type == "call.started":
                process.send(STEERING_MESSAGE)
            if scene.has_result and len(scene.words) >= KILL_AFTER:
                process.kill()
                scene.break_off()
                stage.line("kill", f"kill -9 {process.pid}")
                stage.line("", "The process is gone in the middle of a sentence. It could save nothing.")
                return scene.position
    raise OutlastError("The agent's process ended before it could be killed.")


def _second_act(stage: Stage, folder: Path, position: int, *, is_fast: bool) -> tuple[int, str]:
    """From the last commit to the end. Gives the last event's number and the answer."""
    with (
        AgentProcess(folder, after=position, is_fast=is_fast, is_stalling=False) as process,
        Scene(stage, position=position) as scene,
    ):
        stage.line("start", f"process {process.pid} opens the file; its reader asks for what came after #{position}")
        for event in process.events():
            if event.type == "call.started":
                raise OutlastError("The tool was started a second time.")
            scene.show(event)
            if event.type == "turn.completed":
                process.finish()
        return scene.position, scene.words


def _third_act(stage: Stage, folder: Path, position: int, *, is_fast: bool) -> None:
    """A call is parked, a question is answered meanwhile, and the end of the call wakes the conversation."""
    with (
        AgentProcess(folder, after=position, is_fast=is_fast, is_stalling=False) as process,
        Scene(stage, position=position) as scene,
    ):
        process.send(SLOW_MESSAGE)
        ends: list[str] = []
        for event in process.events():
            scene.show(event)
            if event.type == "turn.completed":
                ends.append(scene.words)
                if len(ends) == 1:
                    process.send(MEANWHILE_MESSAGE)
                elif len(ends) == 3:
                    process.finish()
    if len(ends) != 3:
        raise OutlastError(f"There should be three turns: one that parks, an answer, and a woken one: {ends}")
    stage.line("", "Nobody waited for the tool, and nobody had to ask for its result.")


def _prove(stage: Stage, paths: Paths, answer: str) -> None:
    """The ledger and the log, read by this process: a third one."""
    payments = paths.ledger.read_text().splitlines()
    if len(payments) != 1:
        raise OutlastError(f"The ledger should have one line: {payments}")
    stage.line("", f"{paths.ledger.name}, written by the tool, has one line:")
    stage.line("ledger", payments[0])
    stage.line("", "The log around the crash:")
    log, said = asyncio.run(_read(paths))
    for each in log:
        stage.line(f"#{each.number}", event_line(each.type, each.data))
    if said != answer:
        raise OutlastError(f"The stored answer is not the one that was shown: {said!r}")
    stage.line("answer", said)
    stage.line("", f"{TOOL} ran once, both messages were answered, and no half sentence is left.")


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


def _end(*_: Any) -> None:
    raise SystemExit(128 + signal.SIGTERM)
