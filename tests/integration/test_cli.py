"""Every verb of the command, against a server that is a process of its own (K1)."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.serving_process import OUTLAST, Program, ServingProcess, complaint, run
from tests.support.screens.terminal import Terminal

# Each verb starts an interpreter.
pytestmark = pytest.mark.timeout(180)

APP = '''
import asyncio
from pathlib import Path

from pydantic_ai import Agent

import outlast
from outlast.testing import ScriptedModel, call, error, gate, last_user_text, text


async def opened(name):
    """A gate that the test opens by making a file."""
    while not Path(name).exists():
        await asyncio.sleep(0.01)


def script(messages):
    said = last_user_text(messages)
    verb, _, name = said.partition(" ")
    if "Background task" in said:
        return "I was told."
    match verb:
        case "survey" | "sink":
            has_answer = any(part.part_kind == "tool-return" for part in messages[-1].parts)
            return "It goes on without me." if has_answer else call(verb, name=name)
        case "think":
            return [text("Half a "), gate(lambda: opened(name)), text("sentence.")]
        case "fail":
            return error(400)
        case _:
            return f"You said: {said}"


agent = Agent(ScriptedModel(script), name="surveyor")


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
async def survey(name: str) -> str:
    outlast.output("at the source\\n")
    outlast.progress(1, 4, unit="places")
    await opened(name)
    outlast.output("at the mouth\\n")
    return "4 m deep"


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
async def sink(name: str) -> str:
    await opened(name)
    raise ValueError("too deep")
'''
_names = count(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which a server runs; verbs find it there."""
    made = tmp_path_factory.mktemp("served")
    (made / "app.py").write_text(APP)
    with ServingProcess(made) as server:
        yield made
        server.stop()
        assert "goes on at the next start" in server.err


@pytest.fixture
def gate(folder: Path) -> Path:
    """A gate of this test's own; making the file opens it."""
    return folder / f"gate-{next(_names)}"


def asked(folder: Path, *arguments: str, code: int = 0) -> Any:
    return json.loads(run(folder, *arguments, "--json", code=code))


def new_session(folder: Path, text: str) -> str:
    return asked(folder, "send", "--new", text)["session_id"]


def parked(folder: Path, gate: Path, tool: str = "survey") -> tuple[str, str]:
    """A session whose tool goes on in the background, and the task."""
    session = new_session(folder, f"{tool} {gate.name}")
    run(folder, "attach", session)
    [task] = asked(folder, "ps", "--session", session)
    return session, task["id"]


def test_send_waits_for_the_answer(folder: Path) -> None:
    """K1, D1: the answer on stdout and nothing else; a failed turn fails the command."""
    assert run(folder, "send", "--new", "--wait", "hello") == "You said: hello\n"
    assert run(folder, "send", "--wait", "-", stdin="from a pipe") == "You said: from a pipe\n"
    assert len(asked(folder, "sessions", "list", "--limit", "1")) == 1
    failed = complaint(folder, "send", "--new", "--wait", "fail", code=1)
    assert re.search(r"“outlast sessions retry ses_\w+” tries again\.", failed)
    events = [json.loads(line) for line in run(folder, "send", "--new", "--wait", "hi", "--json").splitlines()]
    assert events[-1]["type"] == "turn.completed"


def test_send_waits_until_background_work_is_answered_too(folder: Path, gate: Path) -> None:
    """D7, K1: --wait ends when nothing will wake the session any more, --turn with the turn."""
    assert run(folder, "send", "--new", "--turn", f"survey {gate.name}") == "It goes on without me.\n"
    assert "The turn goes on" in complaint(folder, "send", "--wait", "hello", "--timeout", "0.5", code=5)
    with Program(folder, "send", "--new", "--wait", f"survey {gate.name}") as waiting:
        waiting.expect("It goes on without me.")
        gate.touch()
        assert waiting.ended() == 0
    assert waiting.out == "It goes on without me.\nI was told.\n"
    assert "✓ survey finished" in waiting.err


def test_send_says_where_the_message_is(folder: Path, gate: Path) -> None:
    """D2: queued behind a running turn, refused when that is asked for, and at --timeout the work goes on."""
    session = new_session(folder, f"think {gate.name}")
    said = run(folder, "send", "--session", session, "--when-busy", "queue", "next")
    assert "waits in place 1" in said
    assert "busy" in complaint(folder, "send", "--session", session, "--when-busy", "reject", "no", code=1)
    assert "The turn goes on" in complaint(folder, "attach", session, "--timeout", "0.2", code=5)
    with Program(folder, "send", "--session", session, "--when-busy", "queue", "--wait", "last") as waiting:
        waiting.expect("Session")
        waiting.interrupt()
        assert waiting.ended() == 130
    assert f"its turn goes on: outlast attach {session}" in waiting.err
    with Program(folder, "send", "--session", session, "--when-busy", "queue", "--wait", "last") as waiting:
        waiting.expect("Session")
        gate.touch()
        assert waiting.ended() == 0
    assert waiting.out == "You said: last\n"


def test_attach_shows_a_turn_from_its_beginning_and_ends_with_it(folder: Path, gate: Path) -> None:
    """K1, P4: whoever comes later sees the same words."""
    session = new_session(folder, f"think {gate.name}")
    with Program(folder, "attach", session) as attached:
        attached.expect("Half a ")
        gate.touch()
        assert attached.ended() == 0
    assert "Half a sentence.\n" in attached.out
    assert run(folder, "attach", session).endswith("Half a sentence.\n")


def test_ctrl_c_leaves_the_turn_running(folder: Path, gate: Path) -> None:
    """K1, D6: the command ends with 130 and says that the work goes on; it does."""
    session = new_session(folder, f"think {gate.name}")
    with Program(folder, "attach", session) as attached:
        attached.expect("Half a ")
        attached.interrupt()
        assert attached.ended() == 130
    assert f"The turn goes on: outlast attach {session}" in attached.err
    assert "Traceback" not in attached.err
    assert asked(folder, "sessions", "show", session)["state"] == "running"
    gate.touch()
    assert "Half a sentence." in run(folder, "attach", session)


def test_stop_holds_a_session_until_it_is_resumed(folder: Path, gate: Path) -> None:
    """D5, P6"""
    session = new_session(folder, f"think {gate.name}")
    with Program(folder, "attach", session) as attached:
        attached.expect("Half a ")
        assert run(folder, "stop", session).startswith("Stopped.")
        assert attached.ended() == 1
    assert run(folder, "stop", session).startswith("No turn was running; the session is held")
    assert asked(folder, "sessions", "show", session)["state"] == "held"
    assert "Nothing waited" in run(folder, "sessions", "resume", session)
    assert asked(folder, "sessions", "show", session)["state"] == "idle"
    run(folder, "sessions", "retry", session)
    assert "Continue from where you stopped" in run(folder, "attach", session)


def test_tasks_are_listed_followed_and_waited_for(folder: Path, gate: Path) -> None:
    """B1, B4: `logs -f` and `wait` end when the task does, with its end as their code."""
    session, task = parked(folder, gate)
    table = run(folder, "ps")
    assert table.splitlines()[0].split() == ["TASK", "STATE", "TITLE", "PROGRESS", "AGE"]
    [row] = [line for line in table.splitlines() if task in line]
    assert "running" in row
    assert "25%" in row
    assert run(folder, "logs", task) == "at the source\n"
    assert run(folder, "wait", task, "--timeout", "0.1", code=5).startswith("… survey is still running")
    with Program(folder, "logs", "-f", task) as logs, Program(folder, "wait", task) as waiting:
        logs.expect("at the source")
        gate.touch()
        assert (logs.ended(), waiting.ended()) == (0, 0)
    assert logs.out == "at the source\nat the mouth\n"
    assert "✓ survey has succeeded" in logs.err
    assert "✓ survey has succeeded" in waiting.out
    assert asked(folder, "ps", "--session", session) == []
    assert [each["state"] for each in asked(folder, "ps", "--all", "--session", session)] == ["succeeded"]
    run(folder, "settle", task, "worked", code=1)


def test_a_server_that_stops_says_what_it_waits_for_and_nothing_of_its_readers(tmp_path: Path) -> None:
    """P1, K1: streams that break off are no news, and a call that takes a while is."""
    (tmp_path / "app.py").write_text(APP)
    with ServingProcess(tmp_path, environment={"OUTLAST_DRAIN": "1"}) as server:
        _, task = parked(tmp_path, tmp_path / "never opened")
        with Program(tmp_path, "logs", "-f", task) as logs:
            logs.expect("at the source")
            server.stop()
            logs.interrupt()
            logs.ended()
    told = server.err.partition("nothing is lost")[2].split("\n")
    assert [each for each in told if each.strip()] == [
        "Stopping: what runs has 1 s to come to a point at which it can be handed over. Ctrl-C leaves at once.",
        "Stopped. What was running goes on at the next start.",
    ]


def test_ids_stay_whole_in_a_narrow_terminal(folder: Path, gate: Path) -> None:
    """K1: the title gives way."""
    session, task = parked(folder, gate)
    run(folder, "sessions", "rename", session, "A title that is much longer than any terminal is wide, surely. " * 3)
    with Terminal([OUTLAST, "sessions", "list", "--limit", "1"], folder=folder, COLUMNS="80") as terminal:
        terminal.expect(session)
        terminal.expect("…")
        assert terminal.ended() == 0
    assert all(len(line) <= 80 for line in terminal.words.splitlines())
    gate.touch()
    run(folder, "wait", task)


def test_a_task_that_fails_fails_what_waits_for_it(folder: Path, gate: Path) -> None:
    """K1: scripts can tell."""
    _, task = parked(folder, gate, "sink")
    gate.touch()
    ended = asked(folder, "wait", task, code=1)
    assert [each["state"] for each in ended] == ["failed"]
    run(folder, "logs", "-f", task, code=1)


def test_ctrl_c_leaves_the_task_running(folder: Path, gate: Path) -> None:
    """K1, B1"""
    _, task = parked(folder, gate)
    with Program(folder, "logs", "-f", task) as logs:
        logs.expect("at the source")
        logs.interrupt()
        assert logs.ended() == 130
    assert f"The task goes on: outlast logs -f {task}" in logs.err
    gate.touch()
    run(folder, "wait", task)


def test_cancel_says_what_became_of_a_task(folder: Path, gate: Path) -> None:
    """B6, P6"""
    session, task = parked(folder, gate)
    assert "has been canceled" in run(folder, "cancel", task)
    assert asked(folder, "cancel", task)["state"] == "canceled"
    session, task = parked(folder, gate)
    run(folder, "stop", session, "--cascade")
    assert [each["state"] for each in asked(folder, "wait", task, code=1)] == ["canceled"]


def test_sessions_are_listed_and_changed(folder: Path) -> None:
    """D10"""
    session = new_session(folder, "hello")
    run(folder, "attach", session)
    assert run(folder, "sessions", "rename", session, "Oslo trip").startswith("It is called")
    [row] = [line for line in run(folder, "sessions", "list").splitlines() if session in line]
    assert "Oslo trip" in row
    shown = run(folder, "sessions", "show", session)
    assert "Oslo trip" in shown
    assert "You said: hello" in shown
    run(folder, "sessions", "archive", session)
    assert session not in run(folder, "sessions", "list")
    assert session in run(folder, "sessions", "list", "--archived")
    run(folder, "sessions", "archive", session, "--undo")
    assert [each["id"] for each in asked(folder, "sessions", "list", "--search", "oslo TRIP")] == [session]
    complaint(folder, "sessions", "delete", session, code=2)
    assert run(folder, "sessions", "delete", session, "--yes") == "Deleted.\n"
    assert "no such session" in complaint(folder, "sessions", "show", session, code=3)


def test_sessions_are_copied_and_answered_anew(folder: Path) -> None:
    """D8, D10: fork, export to a file or a pipe, import, regenerate; and what all that used."""
    session = new_session(folder, "hello")
    run(folder, "attach", session)
    fork = run(folder, "sessions", "fork", session, "--title", "A copy").strip()
    assert "A copy" in run(folder, "sessions", "show", fork)
    run(folder, "sessions", "export", session, "--output", "copy.json")
    imported = run(folder, "sessions", "import", "copy.json").strip()
    document = run(folder, "sessions", "export", imported)
    assert "You said: hello" in document
    assert asked(folder, "sessions", "show", run(folder, "sessions", "import", "-", stdin=document).strip())
    complaint(folder, "sessions", "import", "app.py", code=2)
    run(folder, "sessions", "regenerate", fork)
    assert run(folder, "attach", fork).endswith("You said: hello\n")
    assert asked(folder, "usage")["today"]["requests"] > 0
    assert "requests" in run(folder, "usage")


def test_keys_open_the_server_until_they_are_revoked(folder: Path) -> None:
    """G1, G3: a key opens its owner's sessions and no others; url and token from the environment."""
    key = run(folder, "keys", "make", "bob", "laptop", "--scope", "read", "--days", "7").strip()
    place = json.loads(next(folder.glob("*.server.json")).read_text())
    bob = {"OUTLAST_URL": place["url"], "OUTLAST_TOKEN": key}
    assert json.loads(run(Path("/"), "sessions", "list", "--json", environment=bob)) == []
    assert "only read" in complaint(Path("/"), "send", "hi", code=1, environment=bob)
    [made] = [each for each in asked(folder, "keys", "list") if each["name"] == "laptop"]
    assert "laptop" in run(folder, "keys", "list", "--owner", "bob")
    run(folder, "keys", "revoke", made["id"])
    assert "expired or revoked" in complaint(Path("/"), "ps", code=4, environment=bob)
    assert "revoked" in run(folder, "keys", "list", "--owner", "bob")


def test_the_link_for_a_browser_is_new_each_time(folder: Path) -> None:
    """G1"""
    place = json.loads(next(folder.glob("*.server.json")).read_text())
    first, second = run(folder, "open"), run(folder, "open")
    assert first.startswith(f"{place['url']}/#token=")
    assert first != second


def test_what_cannot_be_done_is_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    """K1: exit codes that scripts can use, and what to do next."""
    assert "outlast serve app.py" in complaint(tmp_path, "ps", code=4)
    assert "is it running?" in complaint(tmp_path, "ps", "--url", "http://127.0.0.1:9", code=4)
    assert "no such task" in complaint(folder, "wait", "tsk_unknown", code=3)
    assert "no such session" in complaint(folder, "attach", "ses_unknown", code=3)
    url = json.loads(next(folder.glob("*.server.json")).read_text())["url"]
    for verb in (("send", "hi"), ("ps",), ("chat", "--message", "hi")):
        told = complaint(tmp_path, *verb, "--url", url, code=2 if verb[0] == "chat" else 4)
        assert "give --token or OUTLAST_TOKEN" in told
    assert "is wrong" in complaint(tmp_path, "ps", "--url", url, "--token", "olk_wrong", code=4)
    complaint(folder, "settle", "tsk_unknown", "perhaps", code=2)
    complaint(folder, "send", "--new", "--session", "ses_unknown", "hi", code=2)
    complaint(folder, "send", "--new", "", code=1)


def test_a_database_is_copied_while_it_is_used(folder: Path, tmp_path: Path) -> None:
    """K1: the copy is whole, and a server starts on it."""
    session = new_session(folder, "keep this")
    run(folder, "attach", session)
    copy = tmp_path / "outlast.db"
    run(folder, "db", "backup", "outlast.db", str(copy))
    complaint(folder, "db", "backup", "outlast.db", str(copy), code=1)
    complaint(folder, "db", "upgrade", "outlast.db", code=1)
    run(tmp_path, "db", "upgrade", "outlast.db")
    complaint(tmp_path, "db", "upgrade", "other.db", code=3)
    (tmp_path / "app.py").write_text(APP)
    with ServingProcess(tmp_path) as server:
        assert "keep this" in run(tmp_path, "sessions", "show", session)
        server.stop()


def test_the_shell_completes_verbs() -> None:
    """K1: what a shell asks when somebody presses Tab."""
    offered = run(
        Path("/"),
        environment={"_OUTLAST_COMPLETE": "complete_bash", "COMP_WORDS": "outlast sess", "COMP_CWORD": "1"},
    )
    assert offered.split() == ["sessions"]


def test_verbs_that_ask_a_server_start_without_a_runtime(tmp_path: Path) -> None:
    """K1: they start fast; what they do not use is not imported."""
    heavy = ("pydantic_ai", "sqlalchemy", "fastapi", "uvicorn", "rich", "prompt_toolkit")
    code = f"import sys; import outlast.cli.main; print([each for each in {heavy} if each in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
