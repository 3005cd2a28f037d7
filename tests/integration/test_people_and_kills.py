"""What waits for somebody while its server is killed: decided, completed, found afterwards (A13, B7, B8, B9, A17)."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes.serving_process import OUTLAST, ServingProcess, run
from tests.support.screens.terminal import Terminal

pytestmark = pytest.mark.timeout(180)

APP = """
from pathlib import Path

from pydantic_ai import Agent

import outlast
from outlast.testing import ScriptedModel, call, last_user_text


def script(messages):
    said = last_user_text(messages)
    if "Background task" in said:
        return "I was told."
    if messages[-1].parts[-1].part_kind == "tool-return":
        return "It waits."
    verb, _, name = said.partition(" ")
    return call(verb, name=name)


agent = Agent(ScriptedModel(script), name="agent")


def note(line):
    with Path("ran.txt").open("a") as file:
        file.write(line + "\\n")


@agent.tool_plain(metadata=outlast.hints(approve=True))
def pay(name: str) -> str:
    note(f"paid {name}")
    return f"paid {name}"


@agent.tool_plain
async def ask(name: str) -> str:
    note(f"asked {name}")
    return await outlast.ask(f"What of {name}?")


@agent.tool_plain
async def build(name: str) -> str:
    async with outlast.external(title=name, deadline=0.2 if name == "brief" else None) as operation:
        Path(f"{name}.url").write_text(operation.url)
    return "ordered"


@agent.tool_plain(metadata=outlast.hints(requires={"connection": "bank"}))
async def push(name: str) -> str:
    note(f"pushed {name} with {len(await outlast.connection('bank'))} characters")
    return "pushed"


runtime = outlast.Outlast(agent)
"""
KEY = "c2VjcmV0IGtleSBvZiBleGFjdGx5IDMyIGJ5dGVzISE="


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    return {"OUTLAST_DATABASE": database_url, "OUTLAST_ENCRYPTION_KEYS": json.dumps([KEY])}


def asked(folder: Path, *arguments: str) -> Any:
    return json.loads(run(folder, *arguments, "--json"))


def begun(folder: Path, text: str) -> str:
    """A session after its first turn."""
    session_id: str = asked(folder, "send", "--new", text)["session_id"]
    run(folder, "attach", session_id)
    return session_id


def completed(url: str, **said: Any) -> dict[str, Any]:
    """As a program elsewhere does it: again and again until somebody answers."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        with suppress(httpx2.TransportError):
            answer = httpx2.post(url, json=said)
            if answer.status_code != 503:
                assert answer.status_code == 200, answer.text
                return answer.json()
        time.sleep(0.05)  # between two tries
    raise AssertionError("nobody answered")


def test_what_waited_at_a_kill_is_decided_and_completed_afterwards(folder: Path, environment: dict[str, str]) -> None:
    """A13, B9, P1: one request in the transcript, one run; a completion sent while nobody serves is applied once."""
    with ServingProcess(folder, environment=environment) as server:
        paying = begun(folder, "pay Oslo")
        begun(folder, "build mill")
        begun(folder, "build brief")
        url = (folder / "mill.url").read_text()
        assert url.startswith(f"{server.place.url}/v1/tasks/"), "alone on its machine it knows its address"
        place = server.port
        server.kill()
    with pytest.raises(httpx2.TransportError):
        httpx2.post(url, json={"success": True})
    with ServingProcess(folder, environment=environment, port=place) as server:
        first = completed(url, success=True, result="stands")
        again = completed(url, success=False, error="fell")
        assert [(each["state"], each["applied"]) for each in (first, again)] == [
            ("succeeded", True),
            ("succeeded", False),
        ]
        [brief] = [each for each in asked(folder, "ps", "--all") if each["title"] == "brief"]
        [ended] = json.loads(run(folder, "wait", brief["id"], "--json", code=1))
        assert ended["error"]["kind"] == "timeout"
        late = completed((folder / "brief.url").read_text(), success=True, result="late")
        assert (late["state"], late["applied"]) == ("failed", False)
        [task] = asked(folder, "approvals")
        run(folder, "approve", task["id"])
        assert json.loads(run(folder, "wait", task["id"], "--json"))[0]["state"] == "succeeded"
        run(folder, "attach", paying)
        transcript = json.dumps(json.loads(run(folder, "sessions", "export", paying))["messages"])
        assert transcript.count('"part_kind": "tool-call"') == 1
        assert (folder / "ran.txt").read_text() == "paid Oslo\n"
        server.stop()


def test_whoever_is_needed_is_told_first_of_all(folder: Path, environment: dict[str, str]) -> None:
    """B7, A13, B8, A17, K1: `ps` and `doctor` begin with it, whatever came later, and say what to do."""
    with ServingProcess(folder, environment=environment) as server:
        for text in ("pay Oslo", "ask Oslo", "push Oslo", "build mill", "build road"):
            begun(folder, text)
        states = [(each["state"], each["kind"]) for each in asked(folder, "ps")]
        assert [state for state, _ in states] == ["awaiting_input"] * 3 + ["running"] * 2
        found = json.loads(run(folder, "doctor", "--json", code=1))
        advice = " ".join(each["advice"] for each in found)
        assert len(found) == 3
        for words in ("outlast approve", "outlast reply", "outlast connections set bank"):
            assert words in advice
        server.stop()


def test_a_credential_is_typed_without_echo(folder: Path, environment: dict[str, str]) -> None:
    """A17, K1: in a terminal; it runs the call that waits."""
    with ServingProcess(folder, environment=environment) as server:
        begun(folder, "push Oslo")
        with Terminal([OUTLAST, "connections", "set", "bank"], folder=folder) as terminal:
            terminal.expect("Value for bank:")
            terminal.enter("account-4711")
            terminal.expect("Kept, for bank.")
            assert terminal.ended() == 0
        assert "4711" not in terminal.shown
        [task] = [each for each in asked(folder, "ps", "--all") if each["tool"] == "push"]
        run(folder, "wait", task["id"])
        assert (folder / "ran.txt").read_text() == "pushed Oslo with 12 characters\n"
        server.stop()
