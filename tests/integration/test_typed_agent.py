"""A typed agent at the command: its output is JSON wherever an answer is printed (K1)."""

import json
from pathlib import Path

import pytest

from tests.support.processes.serving_process import ServingProcess, run

# Each verb starts an interpreter.
pytestmark = pytest.mark.timeout(300)

APP = """
from pydantic import BaseModel
from pydantic_ai import Agent

from outlast.testing import ScriptedModel, call


class Report(BaseModel):
    city: str


agent = Agent(ScriptedModel(lambda messages: call("final_result", city="Oslo")), output_type=Report)
"""
LARGE = """
from pydantic_ai import Agent

from outlast.testing import ScriptedModel, call

agent = Agent(ScriptedModel(lambda messages: call("final_result", response=list(range(60_000)))), output_type=list[int])
"""
ANSWER = '{"city":"Oslo"}\n'


def test_every_verb_that_prints_an_answer_prints_json(tmp_path: Path) -> None:
    """K1: `chat`, `send --wait`, `attach` and `sessions show`."""
    (tmp_path / "app.py").write_text(APP)
    with ServingProcess(tmp_path) as server:
        assert run(tmp_path, "send", "--new", "--wait", "report") == ANSWER
        [session] = json.loads(run(tmp_path, "sessions", "list", "--json"))
        assert run(tmp_path, "attach", session["id"]) == ANSWER
        assert '{"city":"Oslo"}' in run(tmp_path, "sessions", "show", session["id"])
        assert json.loads(run(tmp_path, "attach", session["id"], "--json"))["output"] == {"city": "Oslo"}
        server.stop()
    assert ANSWER in run(tmp_path, "chat", "app:agent", "--message", "report")


def test_a_large_output_is_printed_whole(tmp_path: Path) -> None:
    """K1: although it does not fit into the log."""
    (tmp_path / "app.py").write_text(LARGE)
    rows = list(range(60_000))
    with ServingProcess(tmp_path) as server:
        assert json.loads(run(tmp_path, "send", "--new", "--wait", "report")) == rows
        assert json.loads(run(tmp_path, "send", "--new", "--turn", "report")) == rows
        told = run(tmp_path, "send", "--new", "--turn", "--json", "report").splitlines()
        assert json.loads(told[-1])["data"]["output"] == rows
        assert json.loads(run(tmp_path, "chat", "--message", "report")) == rows
        server.stop()
    assert json.loads(run(tmp_path, "chat", "app:agent", "--message", "report")) == rows
