"""What models, tools and other people wrote does nothing in a terminal but be read, in every command (A11, K1)."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from outlast import Client
from outlast.cli.main import app
from outlast.cli.server_file import ServerFile
from outlast.observe.plain import plain, plain_json, plain_line
from tests.support.processes.serving_process import OUTLAST
from tests.support.screens.terminal import CTRL_C, CTRL_D, Terminal

# One server and one interpreter for all verbs, and three more for those that stay.
pytestmark = pytest.mark.timeout(180)

BAIT = "bait"
HOSTILE = (
    "[red]\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\x9d0;x\x9c\x1bc\x1b[38;5;199m\u202e\u2066\x08\x7f\x1bP0q\x1b\\[/red]bait"
)
"""Sets the clipboard, clears the screen twice, names the window, resets, colours, turns around, goes back, draws."""
OBEYED = re.compile(r"\x1b[^\[]|\x1b\[2J|\x1b\[38;5;199m|[\x80-\x9f\u202a-\u202e\u2066-\u2069\x07\x08\x7f]")
"""Nothing of ours has any of these: colours and cursor movements are all that the command itself sends."""

APP = f"""
import asyncio
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed

import outlast
from outlast.testing import ScriptedModel, call, error, last_user_text, reasoning, text

HOSTILE = {HOSTILE!r}


def script(messages):
    said, last = last_user_text(messages), messages[-1].parts[-1]
    if said.startswith("fail"):
        return error(400, body=HOSTILE)
    if last.part_kind != "tool-return" and said.partition(" ")[0] in ("survey", "sink", "crash"):
        return call(said.partition(" ")[0], place=HOSTILE)
    # Escapes may come in two halves.
    return [reasoning(HOSTILE), text(f"\\x1b"), text("]52;c;ZXZpbA==\\x07 and " + HOSTILE)]


agent = Agent(ScriptedModel(script), name="surveyor " + HOSTILE)


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
async def survey(place: str) -> str:
    outlast.output(HOSTILE + "\\n")
    outlast.progress(1, 4, unit=HOSTILE, label=HOSTILE)
    while not Path("open").exists():
        await asyncio.sleep(0.02)
    return HOSTILE


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
async def sink(place: str) -> str:
    outlast.output(HOSTILE + "\\n")
    await asyncio.sleep(0.1)
    raise ToolFailed(HOSTILE)


@agent.tool_plain
def crash(place: str) -> str:
    print(HOSTILE)
    raise ValueError(HOSTILE)
"""

DRIVER = """
import json, sys
from outlast.cli.main import main

for name, *arguments in json.load(open("verbs.json")):
    print(f"\\n=== {name}", flush=True)
    sys.argv = ["outlast", *arguments]
    try:
        main()
    except SystemExit:
        sys.stdout.flush()
print("\\n=== end", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "driver.py").write_text(DRIVER)
    return tmp_path


class ServerTerminal:
    """A server in a terminal that is read all the time, or it would wait for its reader."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._reader = threading.Thread(target=terminal.ended)
        self._reader.start()

    def stop(self) -> Terminal:
        """All that it has shown, when it has ended."""
        if self._reader.is_alive():
            self._terminal.press(CTRL_C)
            self._reader.join(60)
        return self._terminal


@pytest.fixture
def server(folder: Path) -> Iterator[ServerTerminal]:
    with Terminal([OUTLAST, "serve", "app.py", "--port", "0"], folder=folder, OUTLAST_DRAIN="PT0.1S") as terminal:
        terminal.expect("Ctrl-C stops it")
        served = ServerTerminal(terminal)
        yield served
        served.stop()


def client_of(folder: Path) -> Client:
    place = ServerFile(folder / "outlast.db.server.json").read()
    assert place is not None
    return Client(place.url, place.token)


async def fill(folder: Path) -> dict[str, Any]:
    """Sessions, tasks and keys with hostile text wherever there is room for it; their ids."""
    async with client_of(folder) as client:
        session = await client.sessions.create(title=HOSTILE, metadata={"note": HOSTILE})
        await session.ask(f"hello {HOSTILE}")
        await (await session.send("survey")).outcome()
        await (await session.send("sink")).outcome()
        await (await session.send(f"crash {HOSTILE}")).outcome()
        failed = await client.sessions.create(title=HOSTILE)
        await failed.ask(f"fail {HOSTILE}")
        spare = await client.sessions.create(title=HOSTILE)
        await spare.ask("hello")
        tasks = {str(each.tool): each.id for each in await session.tasks()}
        await client.tasks.wait(tasks["sink"])
        key, _ = await client.keys.make("somebody", f"[red]{BAIT}")
        (folder / "exported.json").write_text(json.dumps(await session.export()))
        return {"session": session.id, "failed": failed.id, "spare": spare.id, "key": key.id, **tasks}


def verbs_of(made: dict[str, Any]) -> list[list[str]]:
    """Every verb that ends by itself, under its own name, as somebody may type it."""
    session, failed, spare = made["session"], made["failed"], made["spare"]
    return [
        ["sessions list", "sessions", "list"],
        ["sessions show", "sessions", "show", session],
        ["sessions show --json", "sessions", "show", session, "--json"],
        ["sessions rename", "sessions", "rename", spare, HOSTILE],
        ["sessions archive", "sessions", "archive", spare],
        ["sessions resume", "sessions", "resume", spare],
        ["sessions retry", "sessions", "retry", failed],
        ["sessions regenerate", "sessions", "regenerate", spare],
        ["sessions fork", "sessions", "fork", spare, "--title", HOSTILE],
        ["sessions export", "sessions", "export", session],
        ["sessions import", "sessions", "import", f"{HOSTILE}.json"],
        ["sessions delete", "sessions", "delete", f"ses_{HOSTILE}", "--yes"],
        ["attach", "attach", failed],
        ["send", "send", "--session", session, "--turn", HOSTILE],
        ["send --wait", "send", "--session", spare, "--wait", "crash"],
        ["ps", "ps", "--all"],
        ["ps --json", "ps", "--all", "--json"],
        ["logs", "logs", made["survey"]],
        ["logs -f", "logs", "-f", made["sink"]],
        ["logs --raw", "logs", "--raw", made["sink"]],
        ["wait", "wait", made["sink"]],
        ["cancel", "cancel", made["survey"]],
        ["settle", "settle", f"tsk_{HOSTILE}", "worked"],
        ["spawn", "spawn", spare, HOSTILE],
        ["approvals", "approvals"],
        ["approve", "approve", f"tsk_{HOSTILE}"],
        ["refuse", "refuse", f"tsk_{HOSTILE}"],
        ["reply", "reply", f"tsk_{HOSTILE}", HOSTILE],
        ["complete", "complete", f"tsk_{HOSTILE}"],
        ["connections list", "connections", "list"],
        ["connections rekey", "connections", "rekey"],
        ["connections remove", "connections", "remove", HOSTILE],
        ["sessions set-agent", "sessions", "set-agent", spare, HOSTILE],
        ["keys generate-encryption", "keys", "generate-encryption"],
        ["stop", "stop", failed],
        ["usage", "usage"],
        ["doctor", "doctor"],
        ["pause", "pause"],
        ["resume", "resume"],
        ["open", "open"],
        ["keys make", "keys", "make", "somebody", f"[red]{HOSTILE}"],
        ["keys list", "keys", "list"],
        ["keys revoke", "keys", "revoke", f"key_{HOSTILE}"],
        ["db backup", "db", "backup", "outlast.db", f"{HOSTILE}.db"],
        ["db upgrade", "db", "upgrade", f"{HOSTILE}-none.db"],
        ["worker", "worker", f"{HOSTILE}.py"],
    ]


STAYING = {"serve", "chat", "demo", "connections set"}
"""Verbs that stay have tests of their own below; the last waits for a value and tells nothing of it."""
QUIET = {
    *("sessions archive", "sessions resume", "sessions retry", "sessions regenerate", "stop", "usage", "pause"),
    *("resume", "open", "sessions fork", "logs --raw", "keys make", "cancel", "settle", "sessions delete", "doctor"),
    *("keys revoke", "spawn", "approvals", "approve", "refuse", "reply", "complete", "keys generate-encryption"),
    *("connections list", "connections rekey", "connections remove", "sessions set-agent"),
}
"""Verbs that need not say anything of what others wrote."""


def all_verbs(commands: typer.Typer, before: str = "") -> Iterator[str]:
    for each in commands.registered_commands:
        assert each.callback is not None
        yield before + (each.name or each.callback.__name__)
    for group in commands.registered_groups:
        assert group.typer_instance is not None
        yield from all_verbs(group.typer_instance, f"{group.name} ")


def assert_harmless(shown: str, *, of: str) -> None:
    found = OBEYED.search(shown)
    assert found is None, (of, shown[max(0, found.start() - 60) : found.end() + 60])


OTHER_NOUNS = ("schedules", "files", "webhooks", "me", "ask_again")
"""Verbs that are not driven here yet."""


async def test_no_verb_lets_a_terminal_obey_what_others_wrote(folder: Path, server: ServerTerminal) -> None:
    """A11, K1: each verb through a terminal; JSON on stdout stays exactly what it says."""
    made = await fill(folder)
    verbs = verbs_of(made)
    # Those of these nouns print what the tables of the others print, through the same filter.
    others = {each for each in all_verbs(app) if each.split()[0] in OTHER_NOUNS}
    assert {name.partition(" -")[0] for name, *_ in verbs} | STAYING | others == set(all_verbs(app))
    (folder / "verbs.json").write_text(json.dumps(verbs))
    with Terminal([sys.executable, "driver.py"], folder=folder) as terminal:
        await asyncio.to_thread(terminal.expect, "=== end")
    shown = dict(re.findall(r"=== ([^\r\n]*)\r?\n(.*?)(?=\r?\n=== )", terminal.shown, re.DOTALL))
    assert set(shown) == {name for name, *_ in verbs}
    for name, said in shown.items():
        assert_harmless(said, of=name)
        assert BAIT in said or name in QUIET, (name, said)
    assert json.loads(shown["sessions show --json"])["title"] == HOSTILE
    assert "a terminal would obey" in " ".join(shown["logs --raw"].split())
    assert "[red]" in shown["sessions list"], "markup is text like any other"
    terminal = await asyncio.to_thread(server.stop)
    assert "ValueError: " in terminal.words
    assert terminal.words.count(BAIT) > 5
    assert_harmless(terminal.shown, of="serve")


async def test_output_is_raw_only_in_a_pipe_and_only_if_asked_for(folder: Path, server: ServerTerminal) -> None:
    made = await fill(folder)

    def run(*arguments: str) -> str:
        done = subprocess.run([OUTLAST, "logs", made["sink"], *arguments], cwd=folder, capture_output=True, timeout=120)
        return done.stdout.decode()

    assert await asyncio.to_thread(run, "--raw") == f"{HOSTILE}\n"
    assert_harmless(await asyncio.to_thread(run), of="a pipe")


@pytest.mark.parametrize("where", ["xterm-256color", "dumb"])
def test_a_chat_lets_the_terminal_obey_nothing(folder: Path, where: str) -> None:
    """K1: words, calls, progress, notes, errors, and what a tool prints."""
    with Terminal([OUTLAST, "chat", "app.py"], folder=folder, TERM=where) as terminal:
        terminal.expect("New session")
        unknown = "/no\x1b[A" if where == "dumb" else "/no"  # elsewhere that is a key, not a text
        for line in ("hello", "survey", "sink", "crash", "fail", "/tasks", "/output", unknown):
            terminal.press(f"{line}\r" if where != "dumb" else f"{line}\n")
            terminal.expect(BAIT if not line.startswith("/no") else "There is no")
        terminal.press(CTRL_D)
        terminal.expect("Go on with")
    assert_harmless(terminal.shown.replace("\x1b[?2004", ""), of="chat")


def test_the_demo_names_its_files_harmlessly(folder: Path) -> None:
    (folder / f"{HOSTILE}.db").parent.mkdir(parents=True, exist_ok=True)
    with Terminal([OUTLAST, "demo", "--port", "0", "--database", f"{HOSTILE}.db"], folder=folder) as terminal:
        terminal.expect(rf"{BAIT}\.db\.server\.json")
        terminal.press(CTRL_C)
        assert terminal.ended() == 0
    assert_harmless(terminal.shown, of="demo")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain text\twith ümläuts, 日本, 👩‍👩‍👧 and\nlines", "plain text\twith ümläuts, 日本, 👩‍👩‍👧 and\nlines"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("\x9b2J\u202etfel\x7f\x00", "�2J�tfel␡␀"),
    ],
)
def test_what_is_shown_in_place_of_control_characters(given: str, shown: str) -> None:
    assert plain(given) == shown
    assert plain(plain(given)) == shown
    assert plain_line(given) == " ".join(shown.split())
    document = json.dumps({"text": given}, ensure_ascii=False)
    assert json.loads(plain_json(document)) == {"text": given}
    assert_harmless(plain_json(document), of="JSON")
