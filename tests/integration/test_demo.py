"""`outlast demo` as a user runs it: a server to try, and a play with processes that really die."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from outlast import Outlast, Session
from outlast.cli.demo import bookkeeper, server
from outlast.testing import ManualClock, approve, next_fire, refuse
from tests.behaviour.test_schedules import until
from tests.support.processes.serving_process import Program, run
from tests.support.turns.runtime import events_of, wait_for_event

OUTLAST = Path(sys.executable).with_name("outlast")
PATIENCE = 120
SLOW_ACT = "A tool that takes longer than a turn should wait"
APPROVAL_ACT = "A tool that needs a person's word, and its process is killed"

# Each test starts several interpreters, one after another.
pytestmark = pytest.mark.timeout(180)


@contextmanager
def running_demo(folder: Path, **environment: str) -> Generator[subprocess.Popen[str]]:
    """The command, with `folder` for its temporary files; ended whatever the test does."""
    process = subprocess.Popen(
        [OUTLAST, "demo", "--play", "--fast"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "80", **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def words(output: str) -> str:
    """The output as one line, however it was wrapped."""
    return " ".join(output.split())


@pytest.fixture(scope="module", params=[80, 30])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo shows, in a terminal of usual and of small width."""
    columns: int = request.param
    with running_demo(tmp_path_factory.mktemp("demo"), COLUMNS=str(columns)) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert all(len(line) <= columns for line in output.splitlines())
    return output


def test_the_demo_survives_its_kill(shown: str) -> None:
    """P2, K1: killed in the middle of its text, the turn goes on and its tool does not run again."""
    said = words(shown).partition(SLOW_ACT)[0]
    first, second = re.findall(r"start process (\d+)", said)
    assert first != second
    assert f"kill -9 {first}" in said
    before, after = said.split(f"kill -9 {first}")
    assert before.count("⋯ pay_invoice(") == 1
    assert "✓ pay_invoice(" in before
    assert "Done: 1,240 EUR went to Nordlys" in before
    assert "nothing left for you to do" not in before
    assert "⋯ pay_invoice(" not in after
    assert re.search(r"turn\.resumed: attempt 2; the broken text \(part [\d.]+\) is dropped", after)
    assert after.count("ledger paid 1,240 EUR to Nordlys") == 1
    assert "answer Done: 1,240 EUR" in after
    assert "when it will be there: on Thursday." in after


def test_a_message_sent_while_the_tool_runs_is_delivered_with_its_result(shown: str) -> None:
    """D3: accepted during the call, delivered at the boundary after it, before the crash."""
    log = words(shown).partition("The log around the crash")[2].partition(SLOW_ACT)[0]
    order = re.findall(r"#\d+ (\S+)", log)
    assert order[:5] == ["call.started", "input.accepted", "call.ended", "input.delivered", "turn.resumed"]
    assert order[-1] == "turn.completed"


def test_a_slow_tool_goes_on_while_a_question_is_answered(shown: str) -> None:
    """B1, B4, B7: parked past its budget, a bar that moves, and its end wakes the conversation."""
    act = words(shown).partition(SLOW_ACT)[2].partition(APPROVAL_ACT)[0]
    order = [
        "↷ check_year(year=2026) goes on in the background as tsk_",
        "past its budget, the call goes on as a task",
        "I will tell you what comes of it.",
        "you › Meanwhile: which one was the largest?",
        "The one you paid today: 1,240 EUR to Nordlys.",
        "✓ check_year finished",
        "the task's end wakes the conversation",
        "one of them was paid twice",
        "Nobody waited for the tool",
    ]
    assert sorted(order, key=act.index) == order
    assert re.search(r"↷ check_year █+░* +\d+% +\d+ of 12 months", act)


def test_an_approval_outlives_the_process_that_asked_for_it(shown: str) -> None:
    """A13, P2, kill: pending at a kill -9, decided after the restart; asked for once, run once, told once."""
    act = words(shown).partition(APPROVAL_ACT)[2]
    order = [
        "you › Then claim that back from Fjord AS.",
        "? May the tool 'claim_back' be run with these arguments?",
        "it has not run: a task waits for a person",
        "✗ kill -9",
        "opens the file, and a person approves",
        "request.closed: approved by you",
        "✓ claim_back finished",
        "It is done: Fjord AS was asked for the 312 EUR.",
        "ledger claimed 312 EUR from Fjord AS",
        "was asked for once, a person was asked once, and it ran once.",
    ]
    assert sorted(order, key=act.index) == order
    assert [act.count(each) for each in order] == [1] * len(order)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_demo_can_be_stopped(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    """K1, P6: Ctrl-C ends the agent's process too, and removes the folder."""
    with running_demo(tmp_path) as process:
        assert process.stdout is not None
        child = next(int(found[1]) for line in process.stdout if (found := re.search(r"start process (\d+)", line)))
        assert psutil.pid_exists(child)
        assert list(tmp_path.iterdir()) != []
        process.send_signal(sent)
        _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (code, "")
    assert not psutil.pid_exists(child)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_whose_parent_is_gone_ends_by_itself(tmp_path: Path) -> None:
    """K1: even if the demo itself is killed, no process is left behind."""
    with running_demo(tmp_path) as process:
        assert process.stdout is not None
        child = next(int(found[1]) for line in process.stdout if (found := re.search(r"start process (\d+)", line)))
        process.kill()
        deadline = time.monotonic() + PATIENCE
        while is_alive(child):
            assert time.monotonic() < deadline, "the agent's process is still there"
            time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Not just an entry that nobody has collected yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_on_a_terminal_words_appear_as_they_are_said(tmp_path: Path) -> None:
    """K1: the same play, drawn live."""
    screen, terminal = os.openpty()
    try:
        process = subprocess.Popen(
            [OUTLAST, "demo", "--play", "--fast"],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "80", "TERM": "xterm-256color"},
        )
        os.close(terminal)
        shown = b"".join(iter(lambda: _read(screen), b"")).decode()
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        os.close(screen)
    assert "\x1b[?25l" in shown, "drawn live, with the cursor hidden"
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h"), "the cursor is given back"
    assert re.search(r"kill -9 \d+", shown)


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 4096)
    except OSError:  # how Linux tells that the other side is closed
        return b""


def test_the_demo_serves_an_agent_to_try(tmp_path: Path) -> None:
    """K1: no key is needed; it says where it is and what to type, works, and stops cleanly."""
    with Program(tmp_path, "demo", "--port", "0", PATH=str(OUTLAST.parent)) as server:
        server.expect("http://127.0.0.1:")
        server.expect("  outlast send --new --wait 'Pay the invoice from Nordlys.'")
        with Program(tmp_path, "send", "--new", "--wait", "Pay the invoice from Nordlys.") as sent:
            sent.expect("I pay nothing before.")
            [waiting] = json.loads(run(tmp_path, "approvals", "--json"))
            run(tmp_path, "approve", waiting["id"])
            assert sent.ended() == 0
        assert "1,240 EUR went to Nordlys; it arrives on Thursday." in sent.out
        run(tmp_path, "send", "--turn", "Was any invoice of this year paid twice?")
        assert "Comparing the invoices of 2026" in run(tmp_path, "ps")
        server.interrupt()
        assert server.ended() == 0
        assert "What was running goes on at the next start." in server.err


def test_what_the_demo_says_to_type_can_be_typed(tmp_path: Path) -> None:
    """K1: where the shell does not know the command, as after `make demo`, it is named with its path."""
    with Program(tmp_path, "demo", "--port", "0", PATH=os.defpath) as server:
        server.expect(f"  {OUTLAST} send --new --wait")
        server.interrupt()
        assert server.ended() == 0


async def test_the_agent_to_try_hears_what_is_said_after_a_stop(tmp_path: Path) -> None:
    """D5: the result of the call that was stopped stands before it."""
    async with server.make_app(tmp_path / "demo.db") as outlast:
        session = await outlast.sessions.create()
        await session.send("Was any invoice of this year paid twice?")
        await wait_for_event(session, "call.started")
        await session.stop()
        assert (await session.ask("hello")).text.startswith("I keep the books.")


async def test_the_agent_to_try_pays_when_a_person_allows_it(tmp_path: Path) -> None:
    """A13, A12: nothing is paid before; the end is told, and what was done has words for people."""
    async with server.make_app(tmp_path / "demo.db") as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Pay the invoice from Nordlys.")
        assert "approve the payment" in (await sent.outcome()).text
        paid = await approve(outlast.tasks, by="Ada")
        assert paid.narration == "Paid 1240 EUR to Nordlys"
        assert await said(session) == "Done: 1,240 EUR went to Nordlys; it arrives on Thursday."
        await (await session.send("Pay the invoice from Nordlys.")).outcome()
        await refuse(outlast.tasks, reason="paid last week", by="Ada")
        assert await said(session) == "All right: that was not done."


async def test_the_agent_to_try_keeps_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D12, A3: what its long check has found, with the session; it says so."""
    monkeypatch.setattr(bookkeeper, "MONTH_SECONDS", 0)
    async with server.make_app(tmp_path / "demo.db") as outlast:
        session = await outlast.sessions.create()
        await session.send("Was any invoice of this year paid twice?")
        assert "paid-twice.csv" in await said(session)
        [kept] = await session.files.list()
        assert (kept.name, kept.origin) == ("paid-twice.csv", "artifact")
        assert b"Fjord AS,March,312" in (await outlast.files.get(kept.id)).data


async def test_the_agent_to_try_spawns_and_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3, F1: what the demo says to type does that."""
    monkeypatch.setattr(bookkeeper, "MONTH_SECONDS", 0)
    async with server.make_app(tmp_path / "demo.db") as outlast:
        session = await outlast.sessions.create()
        await session.send("Check 2025 as well, and do not wait for it.")
        assert "480 invoices" in await said(session)
        [spawned] = await session.tasks()
        assert spawned.tool == "check_year"
        assert "Next time: " in (await session.ask("Check the mailbox every morning at 8.")).text
        [made] = (await outlast.schedules.list()).items
        assert made.title == "mailbox"
        assert "Nordlys" in (await session.ask("Check the mailbox.")).text


async def test_the_agent_to_try_watches_the_account(tmp_path: Path) -> None:
    """F4: what the demo says to type is a monitor: it looks each minute, and speaks when its condition is met."""
    clock = ManualClock()
    agent = bookkeeper.make_agent()
    async with Outlast(agent, database=tmp_path / "demo.db", clock=clock) as outlast:
        session = await outlast.sessions.create()
        promised = (await session.ask("Tell me when the account is below 1,000.")).text
        assert promised.startswith("I watch it, and tell you when its balance is below 1000")
        [made] = (await outlast.schedules.list()).items
        assert (made.kind, made.cron) == ("monitor", "* * * * *")
        for looks in (1, 2):
            await next_fire(outlast, clock)
            await until(partial(_looked, session, looks))
        assert await said(session) == "There are 900 EUR left in the account."
        assert [each.type for each in await events_of(session, "turn.completed")] == ["turn.completed"] * 2


async def _looked(session: Session, times: int) -> bool:
    return [each.state for each in await session.tasks() if each.kind == "call"] == ["succeeded"] * times


async def test_the_agent_to_try_asks_and_gives_work_to_a_sub_session(tmp_path: Path) -> None:
    """B8, C1: the question waits for an answer, and the sub-session's own answer is told."""
    async with server.make_app(tmp_path / "demo.db") as outlast:
        session = await outlast.sessions.create()
        assert "I have a question" in (await (await session.send("Book the receipt of 59 EUR.")).outcome()).text
        [asking] = (await outlast.tasks.requests()).items
        await outlast.tasks.reply(asking.id, "travel")
        assert await said(session) == "Booked: 59 EUR, as travel."
        outcome = await session.ask("Find the cheapest supplier of paper.", wait=PATIENCE)
        assert outcome.text == "My sub-session says: The cheapest for paper is Skog AS, at 31 EUR a box."
        [child] = await outlast.sessions.list(parent=session.id)
        assert child.title != session.title


async def said(session: Session) -> str:
    """The answer to what woke the session last."""
    outcome = await session.settled(wait=PATIENCE)
    assert outcome is not None
    return outcome.text


def test_the_version_is_told() -> None:
    """K1"""
    told = subprocess.run([OUTLAST, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"outlast \d+\.\d+\.\d+\n", told)
