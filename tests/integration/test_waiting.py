"""A turn that nobody can run is not mute: every verb says that it waits, and why (K1, DESIGN 8)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.serving_process import Program, ServingProcess, complaint, run

pytestmark = pytest.mark.timeout(180)

APP = """
from pydantic_ai import Agent

from outlast.testing import ScriptedModel

agent = Agent(ScriptedModel(lambda messages: "Paid."), name="{name}")
"""
WHY = "no worker has agent 'payer'; workers have 'cashier'"


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A server whose agent was renamed, and a session of the old name."""
    folder = tmp_path_factory.mktemp("renamed")
    (folder / "app.py").write_text(APP.format(name="payer"))
    with ServingProcess(folder) as server:
        session = json.loads(run(folder, "send", "--new", "hi", "--json"))["session_id"]
        run(folder, "attach", session)
        server.stop()
    (folder / "app.py").write_text(APP.format(name="cashier"))
    with ServingProcess(folder) as server:
        assert WHY in run(folder, "send", "--session", session, "pay")
        yield folder, session
        server.stop()


def test_send_and_attach_say_why_a_turn_waits(renamed: tuple[Path, str]) -> None:
    folder, session = renamed
    for verb in (("send", "--session", session, "hi", "--wait"), ("attach", session)):
        with Program(folder, *verb) as waiting:
            waiting.expect(f"The turn waits: {WHY}")
            waiting.interrupt()
            assert waiting.ended() == 130
        assert "goes on" not in waiting.err
        told = complaint(folder, *verb, "--timeout", "0.3", code=5)
        assert f"The turn waits: {WHY}" in told
        assert f"outlast attach {session}" in told
        assert "goes on" not in told


@pytest.mark.parametrize("where", [(), ("app.py",)])
def test_a_chat_says_why_a_turn_waits(renamed: tuple[Path, str], where: tuple[str, ...]) -> None:
    folder, session = renamed
    with Program(folder, "chat", *where, "--session", session, "--message", "yo") as chat:
        chat.expect(f"The turn waits: {WHY}")
        chat.interrupt()
        chat.ended()


def test_lists_and_doctor_say_why_a_turn_waits(renamed: tuple[Path, str]) -> None:
    folder, session = renamed
    run(folder, "send", "--session", session, "pay")
    assert f"queued: {WHY}" in run(folder, "sessions", "show", session)
    [row] = [line for line in run(folder, "sessions", "list").splitlines() if session in line]
    assert "queued, no worker for 'payer'" in row
    assert f"outlast stop {session}" in run(folder, "doctor", code=1)


def test_a_pause_is_told_as_the_reason(renamed: tuple[Path, str]) -> None:
    folder, _ = renamed
    run(folder, "pause")
    try:
        told = complaint(folder, "send", "--new", "hi", "--wait", "--timeout", "0.3", code=5)
        assert "The turn waits: the server is paused by" in told
        assert "outlast resume" in told
    finally:
        run(folder, "resume")


def test_a_server_that_runs_no_work_names_the_worker(postgres_url: str, tmp_path: Path) -> None:
    """The command to start one stands in the first lines, and in what waits for it."""
    (tmp_path / "app.py").write_text(APP.format(name="payer"))
    with ServingProcess(tmp_path, "--no-worker", "--database", postgres_url) as server:
        server.expect("outlast worker app.py")
        told = complaint(tmp_path, "send", "hi", "--wait", "--timeout", "0.3", code=5)
        assert "The turn waits: no worker has agent 'payer': start one with `outlast worker APP`" in told
        server.stop()
