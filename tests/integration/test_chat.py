"""`outlast chat` as a person and as a script use it: in a real terminal and as a pipe, with a process that can die."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.terminal import CTRL_C, CTRL_D, Terminal

OUTLAST = Path(sys.executable).with_name("outlast")
PATIENCE = 100

# Each test starts an interpreter or two.
pytestmark = pytest.mark.timeout(240)

APP = '''
import asyncio
import threading
from pathlib import Path

from pydantic_ai import Agent

import outlast
from outlast.testing import ScriptedModel, call, error, gate, last_user_text, reasoning, text


async def opened(name):
    """A gate that the test opens by making a file."""
    while not Path(name).exists():
        await asyncio.sleep(0.01)


def script(messages):
    said = last_user_text(messages)
    if "Background task" in said:
        return f"I was told: {said.splitlines()[1]}" if "finished" in said else f"I was told: {said}"
    match said.partition(" ")[0]:
        case "survey" | "measure" | "block" | "pay" | "paint":
            tool = said.partition(" ")[0]
            has_answer = any(part.part_kind == "tool-return" for part in messages[-1].parts)
            return "It goes on without me." if has_answer else call(tool, river="Glomma")
        case "think":
            return [reasoning("Hm, hm."), text("Half a "), gate(lambda: opened("gate")), text("sentence.")]
        case "fail":
            return error(400)
        case _:
            return f"You said: {said}"


agent = Agent(ScriptedModel(script), name="surveyor")


@agent.tool_plain(metadata=outlast.hints(approve=True))
async def pay(river: str) -> str:
    return f"paid for the {river}"


@agent.tool_plain
async def paint(river: str) -> str:
    return f"{river} painted {await outlast.ask('Which colour?')}"


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
async def survey(river: str) -> str:
    outlast.output("at the source\\n")
    outlast.progress(1, 4, unit="places")
    await opened("half")
    outlast.progress(2, 4, unit="places")
    await opened("done")
    return f"{river}: 4 m deep"


@agent.tool_plain(metadata=outlast.hints(budget=None))
async def measure(river: str) -> str:
    await opened("measured")
    return f"{river}: 90 m wide"


@agent.tool_plain(metadata=outlast.hints(budget=0.05))
def block(river: str) -> str:
    threading.Event().wait()
    return "never"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def chat(folder: Path, *options: str, **environment: str) -> Terminal:
    return Terminal([OUTLAST, "chat", "app.py", *options], folder=folder, **environment)


def chat_with_server(folder: Path, *options: str) -> Terminal:
    return Terminal([OUTLAST, "chat", *options], folder=folder)


def piped(folder: Path, *options: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command = [OUTLAST, "chat", *(options or ["app.py"])]
    return subprocess.run(command, cwd=folder, input=typed, capture_output=True, text=True, timeout=PATIENCE)


def test_words_appear_as_they_are_said_and_the_terminal_is_given_back(folder: Path) -> None:
    """K1, D8: half a sentence is there while the rest is not; reasoning is dimmed; Ctrl-D leaves."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("think about it")
        terminal.expect("you › think about it")
        terminal.expect("Hm, hm.")
        terminal.expect("Half a")
        assert re.search(r"\x1b\[2;3mHm, hm\.", terminal.shown), "reasoning is dimmed"
        assert "sentence." not in terminal.words
        (folder / "gate").touch()
        terminal.expect("Half a sentence.")
        terminal.press("not sent\x15")
        terminal.press(CTRL_D)
        terminal.expect(r"Go on with: outlast chat app\.py --session ses_")
        assert terminal.ended() == 0
        assert terminal.modes() == terminal.modes_before
    assert terminal.shown.rfind("\x1b[?25h") > terminal.shown.rfind("\x1b[?25l"), "the cursor is given back"
    assert terminal.shown.rfind("\x1b[?2004l") > terminal.shown.rfind("\x1b[?2004h"), "and so is pasting"


def test_a_slow_tool_goes_on_while_the_conversation_does_and_its_end_wakes_it(folder: Path) -> None:
    """K1, B1, B4, B7: a handle, a bar that moves, an answer meanwhile, a note, and what the agent says to it."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("survey the river")
        terminal.expect(r"↷ survey\(river='Glomma'\) goes on in the background as tsk_")
        terminal.expect("It goes on without me.")
        terminal.expect(r"survey  █████░+  25%  1 of 4 places")
        terminal.enter("hello")
        terminal.expect("You said: hello")
        (folder / "half").touch()
        terminal.expect(r"survey  ██████████░+  50%  2 of 4 places")
        (folder / "done").touch()
        terminal.expect(r"✓ survey finished after \d+\.\d s")
        terminal.expect("I was told: Result: Glomma: 4 m deep")


def test_a_message_typed_while_a_turn_runs_waits_and_is_delivered(folder: Path) -> None:
    """K1, D1, D3"""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("measure it")
        terminal.expect(r"⋯ measure\(river='Glomma'\)")
        terminal.enter("hello")
        terminal.expect("… waits: hello")
        (folder / "measured").touch()
        terminal.expect(r"✓ measure\(river='Glomma'\) \d+\.\d s")
        terminal.expect(r"you › hello \(delivered\)")
        terminal.expect("You said: hello")


def test_ctrl_c_stops_the_turn_and_not_the_program(folder: Path) -> None:
    """K1, D5, P6: what ran is told, the prompt stays, /retry goes on, and at the prompt Ctrl-C leaves."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("measure it")
        terminal.expect(r"⋯ measure\(river='Glomma'\)")
        terminal.press(CTRL_C)
        terminal.expect(r"✗ measure\(river='Glomma'\) interrupted after .* was cancelled before it finished")
        terminal.expect("■ Stopped")
        terminal.enter("hello")
        terminal.expect("You said: hello")
        terminal.enter("/retry")
        terminal.expect("The last turn did not fail")
        terminal.press(CTRL_C)
        terminal.expect("Go on with")
        assert terminal.ended() == 0


def test_tasks_are_listed_read_and_canceled(folder: Path) -> None:
    """K1, B6: the agent hears of the cancel too."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("/tasks")
        terminal.expect("No tasks")
        terminal.enter("survey the river")
        task_id = terminal.expect(r"tsk_\w+")
        terminal.expect("It goes on without me.")
        terminal.enter("/tasks")
        terminal.expect(rf"{task_id}  survey\(river='Glomma'\)  running")
        terminal.enter("/output")
        terminal.expect("at the source")
        terminal.enter("/cancel tsk_unknown")
        terminal.expect(f"There is no task 'tsk_unknown' here for that: it can be {task_id}")
        terminal.enter(f"/cancel {task_id}")
        terminal.expect(r"■ survey was canceled")
        terminal.expect("I was told: .*was canceled")
        terminal.enter("/tasks")
        terminal.expect(rf"{task_id}  survey\(river='Glomma'\)  canceled")
        terminal.enter("/nonsense")
        terminal.expect("There is no /nonsense")
        terminal.enter("/help")
        terminal.expect("/cancel ID")
        terminal.enter("/quit")
        assert terminal.ended() == 0


def test_a_killed_chat_is_gone_on_with(folder: Path) -> None:
    """P1, P2, B10: the parked call may or may not have taken effect, and the unfinished turn goes on."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("survey the river")
        terminal.expect("It goes on without me.")
        terminal.enter("think about it")
        terminal.expect("Half a")
        terminal.kill()
    (folder / "gate").touch()
    with chat(folder, "--continue") as terminal:
        terminal.expect("Session ses_")
        terminal.expect("you › survey the river")
        terminal.expect(r"↷ survey\(river='Glomma'\) goes on in the background")
        terminal.expect("you › think about it")
        terminal.expect("✗ survey was interrupted when its process ended: .* may or may not have taken effect")
        terminal.expect("The process ended in the middle of this")
        terminal.expect("(?s)I was told: .*may or may not have taken effect")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0


def test_leaving_says_what_still_runs(folder: Path) -> None:
    """K1, P6: a thread cannot be ended, and does not keep the program; a session can be named to go on with."""
    with chat(folder, "--database", "own.db", OUTLAST_DRAIN="PT0.1S") as terminal:
        terminal.expect("New session")
        terminal.enter("block the river")
        task_id = terminal.expect(r"tsk_\w+")
        terminal.expect("It goes on without me.")
        terminal.press(CTRL_D)
        terminal.expect(rf"↷ block \({task_id}\) still runs\. .* may or may not have")
        session_id = terminal.expect(r"ses_\w+")
        assert terminal.ended() == 0
    with chat(folder, "--database", "own.db", "--session", session_id) as terminal:
        terminal.expect("✗ block was interrupted when its process ended")
        terminal.expect("(?s)I was told: .*may or may not have taken effect")


def test_who_is_needed_is_told_with_the_bell_and_decides_in_place(folder: Path) -> None:
    """A13, B7, B8, K1: `/approve`, `/refuse` with a reason, and `/reply`."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("pay the river")
        terminal.expect(r"\? May the tool 'pay' be run with these arguments\?  river='Glomma'  /approve or /refuse")
        terminal.enter("/approve")
        terminal.expect("✓ pay finished")
        terminal.expect("I was told: Result: paid for the Glomma")
        terminal.enter("pay the river")
        terminal.expect(r"\? May the tool 'pay'")
        terminal.enter("/refuse too dear")
        terminal.expect(r"✗ pay failed.*too dear")
        terminal.expect("Reason: too dear<")
        terminal.enter("paint the river")
        terminal.expect(r"\? Which colour\?  /reply")
        terminal.enter("/reply deep blue")
        terminal.expect("✓ paint finished")
        terminal.enter("/approve")
        terminal.expect("There is no task here that asks for that")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert terminal.shown.count("\x07") == 3, "once for each time that somebody is needed"


def test_a_dumb_terminal_gets_plain_lines(folder: Path) -> None:
    """K1"""
    with chat(folder, TERM="dumb") as terminal:
        terminal.expect("New session")
        terminal.press("survey the river\n")
        terminal.expect("goes on in the background")
        (folder / "half").touch()
        terminal.expect("↷ survey █+░+  50%  2 of 4 places")
        (folder / "done").touch()
        terminal.expect("I was told: Result: Glomma: 4 m deep")
        terminal.press("/quit\n")
        assert terminal.ended() == 0
    assert "\x1b" not in terminal.shown


def test_a_pipe_is_answered_to_its_end(folder: Path) -> None:
    """K1: plain lines, and it leaves when all is answered, also what goes on in the background."""
    with subprocess.Popen(
        [OUTLAST, "chat", "app.py"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("survey the river\n")
        process.stdin.close()
        assert process.stderr is not None
        assert process.stdout.readline() == "It goes on without me.\n"
        (folder / "half").touch()
        (folder / "done").touch()
        assert process.stdout.read().startswith("I was told: Result: Glomma: 4 m deep")
        shown = process.stderr.read()
    assert process.returncode == 0
    assert "\x1b" not in shown
    order = [
        "Loading app.py",
        "you › survey the river",
        "↷ survey(river='Glomma') goes on in the background as tsk_",
        "✓ survey finished",
        "Go on with: outlast chat app.py --session ses_",
    ]
    assert sorted(order, key=shown.index) == order


def test_a_file_can_be_the_input(folder: Path) -> None:
    """K1"""
    (folder / "typed.txt").write_text("hello without a last line break")
    with (folder / "typed.txt").open() as typed:
        done = subprocess.run(
            [OUTLAST, "chat", "app.py"], cwd=folder, stdin=typed, capture_output=True, text=True, timeout=PATIENCE
        )
    assert (done.returncode, done.stdout) == (0, "You said: hello without a last line break\n")


PRINTING = """
import atexit
import subprocess
import sys
import threading

from pydantic_ai import Agent

from outlast.testing import ScriptedModel, call, last_user_text

print("loaded")
atexit.register(print, "the end")


def script(messages):
    has_answer = any(part.part_kind == "tool-return" for part in messages[-1].parts)
    return f"You said: {last_user_text(messages)}" if has_answer else call("look")


agent = Agent(ScriptedModel(script))


@agent.tool_plain
def look() -> str:
    print("in a tool")
    talking = threading.Thread(target=print, args=("in a thread",))
    talking.start()
    talking.join()
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "print('in a program')"], check=True)
    return "seen"
"""


@pytest.mark.parametrize("way", [["--message", "hello"], []], ids=["message", "pipe"])
def test_what_an_app_prints_is_no_answer(tmp_path: Path, way: list[str]) -> None:
    """K1: by itself, in its tools and their threads, or by programs that they start."""
    (tmp_path / "app.py").write_text(PRINTING)
    done = piped(tmp_path, "app.py", *way, typed="" if way else "hello\n")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")
    for said in ("loaded", "in a tool", "in a thread", "in a program", "the end"):
        assert f"{said}\n" in done.stderr


def test_each_line_of_a_pipe_is_answered_in_order(folder: Path) -> None:
    """K1: the next line waits until the one before is answered; answers are on stdout alone."""
    lines = [f"line {number}" for number in range(12)]
    done = piped(folder, "app.py", typed="\n".join(["", *lines, "/tasks", "fail", "last"]))
    assert (done.returncode, done.stdout) == (0, "".join(f"You said: {each}\n" for each in [*lines, "last"]))
    assert "(model_error)" in done.stderr
    failed = piped(folder, "app.py", "--continue", typed="hello\nfail\n")
    assert (failed.returncode, failed.stdout) == (1, "You said: hello\n")


SLOW = """
import time
from pathlib import Path

while not Path("loaded").exists():
    time.sleep(0.01)
"""


def test_it_says_something_at_once_and_keeps_what_is_typed(folder: Path) -> None:
    """K1: the first line stands there before anything slow is loaded; a line and a half typed meanwhile count."""
    (folder / "app.py").write_text(SLOW + APP)
    with chat(folder) as terminal:
        terminal.expect("Loading app.py")
        terminal.press("hello\rand half a ")
        (folder / "loaded").touch()
        terminal.expect("You said: hello")
        terminal.enter("line")
        terminal.expect("You said: and half a line")


def test_what_is_typed_can_be_edited_recalled_and_pasted(folder: Path) -> None:
    """K1: a pasted text is one message, line breaks and all; what a terminal would obey in it is seen instead."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("helo\x1b[Dl")
        terminal.expect("You said: hello")
        terminal.press("half\x1b[A")
        terminal.enter("!")
        terminal.expect("You said: hello!")
        terminal.press("\x1b[200~two\rlines\x1b]0;title\x07\x1b[201~")
        terminal.expect("lines␛")
        terminal.enter(".")
        terminal.expect("You said: two\nlines␛]0;title␇\\.")
    assert "\x1b]0" not in terminal.shown


def test_what_a_tool_prints_stands_above_what_is_typed(folder: Path) -> None:
    """K1: from its thread, while a line is half typed; the line is not lost."""
    (folder / "app.py").write_text(APP + SHOUTING)
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("print it")
        terminal.expect("⋯ shout")
        terminal.press("half a ")
        terminal.expect("› half a")
        (folder / "printed").touch()
        terminal.expect("first line\n(.*\n)*second line\n")
        terminal.expect("› half a")
        terminal.enter("line")
        terminal.expect("You said: half a line")


SHOUTING = """
import time


def shouting(messages):
    if last_user_text(messages) == "print it":
        return "Done." if messages[-1].parts[-1].part_kind == "tool-return" else call("shout")
    return script(messages)


agent = Agent(ScriptedModel(shouting), name="surveyor")


@agent.tool_plain
def shout() -> str:
    while not Path("printed").exists():
        time.sleep(0.01)
    print("first line", end="\\nsecond ")
    print("line")
    return "done"
"""


def test_why_a_tool_failed_stands_beside_it(folder: Path) -> None:
    """A2, K1: for who runs the program: the exception's last line, its frames on lines of their own; no more to others.

    What a provider said needs no frames.
    """
    (folder / "app.py").write_text(APP + BROKEN)
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("break it")
        terminal.expect(r"Traceback \(most recent call last\):\n")
        terminal.expect(r"ValueError: the dam is broken\n")
        terminal.expect(r"✗ broken\(\) failed .* internal error \(reference \w+\)\. ValueError: the dam is broken")
        terminal.expect(r"I heard: The tool 'broken' failed with an internal error \(reference \w+\)\.\n")
        before = len(terminal.words)
        terminal.enter("fail")
        terminal.expect(r"\(model_error\)")
        assert "Traceback" not in terminal.words[before:]


BROKEN = """
def breaking(messages):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return" and last.tool_name == "broken":
        return f"I heard: {last.content}"
    return call("broken") if last_user_text(messages) == "break it" else script(messages)


agent = Agent(ScriptedModel(breaking), name="surveyor")


@agent.tool_plain
def broken() -> str:
    raise ValueError("the dam is broken")
"""


def test_one_message_prints_the_answer_alone(folder: Path) -> None:
    """K1: the rest is on stderr; the exit code says how the turn ended."""
    done = piped(folder, "app.py:agent", "--message", "hello")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")
    session_id = re.findall(r"ses_\w+", done.stderr)[0]
    failed = piped(folder, "app", "--session", session_id, "--message", "fail now")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "(model_error) /retry tries again." in failed.stderr


def test_one_message_stopped_by_ctrl_c(folder: Path) -> None:
    """K1, D5"""
    with chat(folder, "--message", "measure it") as terminal:
        terminal.expect(r"⋯ measure\(river='Glomma'\)")
        terminal.press(CTRL_C)
        terminal.expect("■ Stopped")
        assert terminal.ended() == 130


def test_a_chat_that_is_told_to_end(folder: Path) -> None:
    """P1: the turn is handed over, and the terminal is given back."""
    with chat(folder, OUTLAST_DRAIN="PT0.1S") as terminal:
        terminal.expect("New session")
        terminal.enter("measure it")
        terminal.expect(r"⋯ measure")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.expect("The turn is not over: at the next start it goes on from its last step")
        assert terminal.ended() == 143
        assert terminal.modes() == terminal.modes_before


def test_a_database_that_is_in_use(folder: Path) -> None:
    """K1: a second chat on the same file is refused, with what to do."""
    with chat(folder) as terminal:
        terminal.expect("New session")
        second = piped(folder, "app.py", "--message", "hello")
    assert second.returncode == 2
    assert f"Another process (pid {terminal.pid}) already runs the work" in second.stderr


def test_a_chat_with_a_server(folder: Path) -> None:
    """K1: over the server that holds the database, one found in the folder, or one named; the screen is the same."""
    with ServingProcess(folder) as server:
        with chat(folder) as terminal:
            terminal.expect(f"A server has this database: talking with it at {server.place.url}")
            terminal.expect("New session")
            terminal.enter("survey the river")
            terminal.expect(r"↷ survey\(river='Glomma'\) goes on in the background as tsk_")
            terminal.expect(r"survey  █████░+  25%  1 of 4 places")
            terminal.enter("/tasks")
            task_id = terminal.expect(r"tsk_\w+  survey\(river='Glomma'\)  running")[:20]
            terminal.enter("/output")
            terminal.expect("at the source")
            terminal.enter("measure it")
            terminal.expect(r"⋯ measure\(river='Glomma'\)")
            terminal.press(CTRL_C)
            terminal.expect("■ Stopped")
            terminal.press(CTRL_D)
            terminal.expect(rf"↷ survey \({task_id}.*\) goes on in the server")
            session_id = terminal.expect(r"ses_\w+")
            assert terminal.ended() == 0
        with chat_with_server(folder, "--continue") as terminal:
            terminal.expect(f"Session {session_id}")
            terminal.expect("you › survey the river")
            terminal.enter("/cancel")
            terminal.expect("■ survey was canceled")
            terminal.enter("hello")
            terminal.expect("I was told: .*was canceled")
        url = ["--url", server.place.url, "--token", server.place.token]
        asked = piped(folder, *url, typed="one\ntwo\n")
        assert (asked.returncode, asked.stdout) == (0, "You said: one\nYou said: two\n")
        assert f"Go on with: outlast chat --url {server.place.url} --session ses_" in asked.stderr
        answer = piped(folder, *url, "--continue", "--message", "three")
        assert (answer.returncode, answer.stdout) == (0, "You said: three\n")
        assert piped(folder, "--url", server.place.url, "--token", "wrong", "--message", "no").returncode == 2
        assert piped(folder, "app.py", "--url", server.place.url).returncode == 2
        server.stop()


def test_a_second_ctrl_c_does_not_wait_for_the_first(folder: Path) -> None:
    """K1, P1: a tool in its thread may take as long as it likes, and so may the drain."""
    with chat(folder, OUTLAST_DRAIN="PT600S") as terminal:
        terminal.expect("New session")
        terminal.enter("block the river")
        terminal.expect("It goes on without me.")
        terminal.press(CTRL_C)
        # The words are shown before the turn has ended: pressed in between, it meant the turn.
        if terminal.expect("Go on with|Ctrl-C again leaves|■ Stopped") != "Go on with":
            terminal.press(CTRL_C)
            terminal.expect("Go on with")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.modes() == terminal.modes_before


LATE = """
import outlast.cli.chat.loop as loop
from outlast.handles.session import Session

is_stopped, shown, stop = asyncio.Event(), loop.with_output, Session.stop


async def stopping(session, **options):
    try:
        return await stop(session, **options)
    finally:
        asyncio.get_running_loop().call_later(0.5, is_stopped.set)


async def shown_late(session, event):
    if event.type == "turn.completed":
        await is_stopped.wait()
    return await shown(session, event)


Session.stop, loop.with_output = stopping, shown_late
"""


def test_ctrl_c_between_the_last_word_and_the_end_of_a_turn(folder: Path) -> None:
    """K1, D5: it meant a turn that had ended unseen; when that is said, the next one leaves."""
    (folder / "app.py").write_text(APP + LATE)
    with chat(folder) as terminal:
        terminal.expect("New session")
        terminal.enter("hello")
        terminal.expect("You said: hello")
        # By then the turn is most likely over; if not, it is stopped, and Ctrl-C leaves all the same.
        terminal.enter("/tasks")
        terminal.expect("No tasks")
        terminal.press(CTRL_C)
        terminal.expect("Ctrl-C again leaves|■ Stopped")
        terminal.press(CTRL_C)
        terminal.expect("Go on with")
        assert terminal.ended() == 0


BAD_APPS = {
    "empty": ("", "bad.py", "has no Outlast and no pydantic_ai.Agent"),
    "several": (
        "from pydantic_ai import Agent\none, two = Agent(), Agent()",
        "bad.py",
        "has several of type Agent: one, two. Choose one, such as bad.py:one",
    ),
    "fails": ("def f():\n    return 1 / 0\nf()", "bad.py", "line 2, in f\n    return 1 / 0"),
    "syntax": ("def (", "bad.py", "SyntaxError"),
    "exits": ("raise SystemExit(3)", "bad.py", "failed while it was imported"),
    "no such name": ("from pydantic_ai import Agent\none = Agent()", "bad.py:two", "has no 'two'. It has: one."),
    "wrong kind": ("one = 1", "bad.py:one", "neither an Outlast nor an Agent, but of type int"),
    "no such file": ("", "none.py", "There is no file none.py"),
    "no such module": ("", "none", "There is no module 'none'. A file is named with its ending: none.py"),
    "missing import": ("import not_there", "bad", "No module named 'not_there'"),
}


@pytest.mark.parametrize(("code", "target", "said"), BAD_APPS.values(), ids=BAD_APPS)
def test_an_app_that_cannot_be_used_is_told(tmp_path: Path, code: str, target: str, said: str) -> None:
    """K1: what is wrong and how to go on, without a trace of our own."""
    (tmp_path / "bad.py").write_text(code)
    done = piped(tmp_path, target)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "outlast/cli" not in done.stderr


def test_the_one_outlast_is_found_before_agents(folder: Path) -> None:
    """K1: it names its own database, so that none can be given."""
    (folder / "own.py").write_text(
        "from app import agent\nfrom outlast import Outlast\nruntime = Outlast(agent, database='runtime.db')\n"
    )
    assert piped(folder, "own.py", "--message", "hello").stdout == "You said: hello\n"
    assert (folder / "runtime.db").exists()
    refused = piped(folder, "own.py", "--database", "other.db")
    assert refused.returncode == 2
    assert "names its own database" in refused.stderr
