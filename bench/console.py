"""CONSOLE: the web console in a real browser: what is loaded until the first paint, how long until a long session is on
screen, and the longest task of the page while fifty tasks put out text. Needs Chromium and a built console."""

import asyncio
import gzip
import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.console_app import TASKS, agent
from bench.long_log import grow
from bench.measure import Report, Target
from bench.server_process import serving
from outlast import Outlast, Settings
from outlast.api.routes.server.page import BUILT
from outlast.runtime import LOCAL_OWNER
from tests.support.screens.browser import Browser, Page, running_browser
from tests.support.screens.console import Console, send

ID = "CONSOLE"
APP = "bench.console_app:app"
_LENGTHS = (500, 5_000, 50_000)
_TURNS = 10
_ROUNDS = 7
_WATCHED_SECONDS = 12
_FIRST_PAGE = ("index.html", "src/chat/page.tsx")
_ON_SCREEN = """new Promise((done) => {
  const look = () => document.querySelector('[data-turn]:last-of-type [data-text]')
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look, 2);
  look();
})"""
"""Milliseconds from the beginning of the navigation until the last answer has been drawn."""


def run() -> Report:
    report = Report(ID, "the web console in a browser", "SQLite file, WAL, normal", columns=("what", "found"))
    _sizes(report)
    with tempfile.TemporaryDirectory() as name, running_browser() as browser:
        folder = Path(name)
        sessions = asyncio.run(_sessions(folder / "bench.db"))
        with serving(folder, app=APP) as place:
            asyncio.run(_measure(report, Console(place.server), browser, sessions))
    return report


def _sizes(report: Report) -> None:
    """As a browser loads them: packed one by one."""
    manifest = json.loads((BUILT / "manifest.json").read_text(encoding="utf-8"))
    files = {file for name in _FIRST_PAGE for file in _files(manifest, name)} | {"index.html"}
    kilobytes = sum(len(gzip.compress((BUILT / each).read_bytes())) for each in files) / 1_000
    report.numbers["first_paint_kb"] = kilobytes
    report.rows.append(("to the first paint", f"{kilobytes:.1f} kB packed, {len(files)} files"))
    report.targets.append(Target("to the first paint, kB", kilobytes, 180, is_most=True))


def _files(manifest: Mapping[str, Any], name: str) -> Iterator[str]:
    yield manifest[name]["file"]
    yield from manifest[name].get("css", [])
    for each in manifest[name].get("imports", []):
        yield from _files(manifest, each)


async def _sessions(path: Path) -> list[tuple[str, int]]:
    """Ten real turns each, with eight calls a turn; the longer ones have copies of them."""
    made: list[str] = []
    async with Outlast(agent, database=path, settings=Settings(durability="normal")) as outlast:
        for _ in _LENGTHS:
            session = await outlast.owned_by(LOCAL_OWNER).create()
            for _ in range(_TURNS):
                await session.ask("What is there?")
            made.append(session.id)
    return [(id, grow(path, id, length)) for id, length in zip(made, _LENGTHS, strict=True)]


async def _measure(report: Report, console: Console, browser: Browser, sessions: list[tuple[str, int]]) -> None:
    async with browser.page() as page:
        await page.resize(1400, 850)
        await console.sign_in(page)
        for (session_id, events), length in zip(sessions, _LENGTHS, strict=True):
            found = [await _opened(page, f"{console.address}/sessions/{session_id}") for _ in range(_ROUNDS)][1:]
            middle = statistics.median(found)
            report.numbers[f"events_{length}"], report.numbers[f"on_screen_{length}_ms"] = events, middle
            report.rows.append((f"{events:,} events on screen", f"p50 {middle:.0f} ms, most {max(found):.0f} ms"))
        for length, bound in ((5_000, 500), (50_000, 1_000)):
            name = f"{length:,} events on screen, p50, ms"
            report.targets.append(Target(name, report.numbers[f"on_screen_{length}_ms"], bound, is_most=True))
        await _watched(report, console, page)


async def _opened(page: Page, url: str) -> float:
    """The page anew, with what a browser keeps of it."""
    await page.open("about:blank")
    await page.open(url, until="commit")
    return float(await page.evaluate(_ON_SCREEN))


async def _watched(report: Report, console: Console, page: Page) -> None:
    """Fifty tasks put out ten lines a second each, and tell their progress, while chat and rail are shown."""
    await console.begin(page, "pour")
    await page.wait_for("[data-rail] [data-last-line]")
    tasks = await page.tasks_of(_WATCHED_SECONDS)
    assert await page.evaluate("document.querySelectorAll('[data-rail] [data-state=running]').length") == TASKS
    typed = "while they pour"
    await send(page, typed)
    await page.wait_for(f"text={typed}")
    longest, busiest = max(clock for clock, _ in tasks), max(processor for _, processor in tasks)
    share = sum(processor for _, processor in tasks) / _WATCHED_SECONDS / 1_000
    long = sum(clock > 50 for clock, _ in tasks)
    report.numbers |= {"long_tasks": long, "longest_task_ms": longest, "longest_task_processor_ms": busiest}
    report.numbers["page_thread_share"] = share
    found = f"longest task {longest:.0f} ms ({busiest:.0f} ms of processor), {long} over 50 ms"
    report.rows.append((f"{TASKS} tasks at work", f"{found}; {share:.0%} of a core"))
    name = f"longest task while {TASKS} tasks put out text, "
    report.targets.append(Target(f"{name}ms", longest, 100, is_most=True))
    report.targets.append(Target(f"{name}ms of processor", busiest, 100, is_most=True))
    if longest > busiest * 2:
        report.notes.append("The page's thread was not let run for most of its longest task: the machine was busy.")
