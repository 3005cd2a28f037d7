"""`outlast serve` as a process: killed, reloaded, stopped, and what was running goes on (P2, K1)."""

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.test_cli import APP
from tests.support.processes.serving_process import Program, ServingProcess, complaint, run

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def asked(folder: Path, *arguments: str) -> Any:
    return json.loads(run(folder, *arguments, "--json"))


def test_a_turn_goes_on_when_the_code_changes(folder: Path) -> None:
    """P2, K1: `--reload` starts a new process with the new code; a reader stays, and the text is exact."""
    with ServingProcess(folder, "--reload") as server:
        before = server.place
        session = asked(folder, "send", "--new", "think gate")["session_id"]
        with Program(folder, "attach", session) as attached:
            attached.expect("Half a ")
            (folder / "app.py").write_text(APP.replace("You said", "You wrote"))
            server.expect("Outlast serves", count=2)
            assert (server.place.url, server.place.token) == (before.url, before.token)
            assert server.place.pid != before.pid
            (folder / "gate").touch()
            assert attached.ended() == 0
        assert attached.out.endswith("Half a sentence.\n")
        shown = asked(folder, "sessions", "show", session)
        assert (shown["result"]["text"], shown["result"]["state"]) == ("Half a sentence.", "completed")
        assert run(folder, "send", "--wait", "hello") == "You wrote: hello\n"
        server.stop()


def test_a_broken_app_is_left_without_further_words(folder: Path) -> None:
    """K1: `--reload` waits for the file to be mended; Ctrl-C says nothing of the library that watches it."""
    (folder / "app.py").write_text("import nothing_of_this_name")
    with Program(folder, "serve", "app.py", "--port", "0", "--reload") as server:
        server.expect("No module named 'nothing_of_this_name'")
        [broken] = psutil.Process(server.process.pid).children()
        while broken.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        server.interrupt()
        assert server.ended() == 0
    assert (server.out + server.err).rstrip().endswith("No module named 'nothing_of_this_name'")


AWAY_AT_FIRST = """
from outlast.cli.server.http_server import Server
from outlast.errors import StoreUnavailable

plain, tries = Server._token, []

async def token(self, place):
    tries.append(place)
    if len(tries) < 3:
        raise StoreUnavailable("The database is away.")
    return await plain(self, place)

Server._token = token
"""


def test_a_server_whose_database_goes_away_while_it_starts_goes_on(folder: Path) -> None:
    """P1: it answers from the moment at which it listens, and says where it is when the database is back."""
    (folder / "app.py").write_text(APP + AWAY_AT_FIRST)
    with ServingProcess(folder) as server:
        assert run(folder, "send", "--wait", "hello") == "You said: hello\n"
        server.stop()


def test_what_may_or_may_not_have_happened_is_settled_by_a_person(folder: Path) -> None:
    """B8, K1: a server is killed while a tool works; afterwards a person says what became of it."""
    with ServingProcess(folder) as server:
        session = asked(folder, "send", "--new", "survey gate")["session_id"]
        run(folder, "attach", session)
        [task] = asked(folder, "ps")
        server.kill()
    assert "is it running?" in complaint(folder, "ps", code=4)
    with ServingProcess(folder) as server:
        [ended] = json.loads(run(folder, "wait", task["id"], "--json", code=1))
        assert ended["error"]["kind"] == "interrupted"
        found = json.loads(run(folder, "doctor", "--json", code=1))
        assert [(each["id"], each["advice"]) for each in found] == [
            (task["id"], f"outlast settle {task['id']} worked|failed|try_again")
        ]
        assert "nobody knows its effect" in run(folder, "doctor", code=1)
        assert run(folder, "settle", task["id"], "worked", "--note", "I looked.").startswith("Settled as worked")
        assert run(folder, "doctor") == "Nothing is stuck.\n"
        held = asked(folder, "send", "--new", "think gate")["session_id"]
        run(folder, "send", "--session", held, "--when-busy", "queue", "next")
        run(folder, "stop", held)
        assert f"outlast sessions resume {held}" in run(folder, "doctor", code=1)
        server.stop()


def test_a_pause_accepts_everything_and_starts_nothing(folder: Path) -> None:
    """I3, K1: also after a restart, until somebody ends it; `doctor` says so."""
    with ServingProcess(folder, environment={"OUTLAST_BUDGETT": "3"}) as server:
        assert server.err.count("OUTLAST_BUDGETT is not a setting of Outlast: did you mean OUTLAST_BUDGET?\n") == 1
        assert run(folder, "pause").startswith("Paused by")
        session = asked(folder, "send", "--new", "hello")["session_id"]
        server.stop()
    with ServingProcess(folder) as server:
        assert asked(folder, "sessions", "show", session)["state"] == "queued"
        assert "nothing new is started" in run(folder, "doctor", code=1)
        assert run(folder, "resume") == "Work goes on.\n"
        assert run(folder, "attach", session).endswith("You said: hello\n")
        assert run(folder, "doctor") == "Nothing is stuck.\n"
        server.stop()


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    """K1"""
    with ServingProcess(folder) as server:
        port = server.place.url.rpartition(":")[2]
        assert "is taken" in complaint(folder, "serve", "app.py", "--port", port, code=1)
        assert "Another process" in complaint(folder, "serve", "app.py", "--port", "0", code=1)
        server.process.terminate()
        assert server.ended() == 0
    assert "no file" in complaint(folder, "serve", "other.py", code=2)
