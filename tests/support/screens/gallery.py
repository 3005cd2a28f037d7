"""The console of a busy server: chats, work that runs, things that wait; and its pictures."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Page
from tests.support.screens.console import Console

APP = "tests.support.apps.demo_app:app"
WIDE, PHONE = (1280, 800), (390, 844)
SETTLED = """Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition)
  .map((each) => each.finished)).then(() => true)"""


@dataclass(frozen=True)
class Scene:
    """A page: its address, and what is there once it is drawn."""

    name: str
    path: str
    shown: str
    size: tuple[int, int] = WIDE


def demo_server(folder: Path) -> ServingProcess:
    """Not yet entered."""
    keys = json.dumps([Fernet.generate_key().decode()])
    own = {"OUTLAST_ENCRYPTION_KEYS": keys, "OUTLAST_ALLOWED_NETWORKS": '["127.0.0.0/8"]'}
    return ServingProcess(folder, app=APP, environment=own)


async def busy(console: Console) -> list[Scene]:
    """Sets work going, and gives every page with what it shows then."""
    async with console.api() as api:

        async def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
            return (await api.post(f"/v1/{path}", json=body)).raise_for_status().json()

        async def chat(text: str) -> str:
            session = (await ask("sessions", {}))["id"]
            await ask(f"sessions/{session}/messages", {"text": text})
            return session

        async def task_of(session: str) -> str:
            async with asyncio.timeout(60):
                while not (items := await tasks_of(session)):  # noqa: ASYNC110 - the server says when
                    await asyncio.sleep(0.1)
            return items[0]["id"]

        async def tasks_of(session: str) -> list[dict[str, Any]]:
            return (await api.get("/v1/tasks", params={"session": session})).raise_for_status().json()["items"]

        await chat("What can you do?")
        stopped = await task_of(await chat("Was any invoice of 2025 paid twice?"))
        await ask(f"tasks/{stopped}/cancel", {})
        paying = await chat("Pay the invoice of Nordlys, please.")
        await task_of(paying)
        await ask("schedules", {"session_id": paying, "text": "What is new?", "cron": "0 8 * * 1-5"})
        await ask("webhooks", {"url": f"{console.server.place.url}/nobody"})
        await ask("keys", {"name": "nightly report", "owner_id": "local"})
        (await api.put("/v1/connections/github", json={"value": "ghp_example"})).raise_for_status()
        checking = await chat("Was any invoice of this year paid twice?")
        task = await task_of(checking)
    return [
        Scene("chat", f"/sessions/{checking}", "[data-task] [role=progressbar][aria-valuenow]"),
        Scene("task", f"/tasks/{task}", "[role=log] >> text=invoices"),
        Scene("approval", f"/sessions/{paying}", "[data-request]"),
        Scene("phone", f"/sessions/{paying}", "[data-request]", PHONE),
        Scene("new", "/", "text=What should be done?"),
        Scene("tasks", "/tasks", "ul[aria-label=Tasks] [data-state=canceled]"),
        Scene("needs", "/needs", "ul[aria-label='What waits for you'] [data-request]"),
        Scene("schedules", "/schedules", "[data-schedule]"),
        Scene("webhooks", "/webhooks", "[data-webhook]"),
        Scene("usage", "/usage", "text=This week"),
        Scene("keys", "/keys", "[data-key]"),
        Scene("connections", "/connections", "[data-connection]"),
    ]


async def draw(console: Console, page: Page, scene: Scene, theme: str, path: Path) -> None:
    await page.resize(*scene.size)
    await page.evaluate(f"localStorage.setItem('outlast.theme', '{theme}')")
    await page.open(f"{console.address}{scene.path}")
    await page.wait_for(scene.shown)
    await page.evaluate(SETTLED)
    await page.screenshot(str(path))
