"""The app that the server benchmarks serve: an agent that answers at once, and one that speaks for a while."""

from datetime import timedelta

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings
from outlast.testing import ScriptedModel, Step, last_user_text, text


def _reply(messages: list[ModelMessage]) -> Step:
    if last_user_text(messages).startswith("speak"):
        return [text("word " * 400, chunk=5, pause=0.025)]
    return "Hello."


app = Outlast(
    Agent(ScriptedModel(_reply), name="bench"),
    database="bench.db",
    settings=Settings(
        max_requests_per_minute=10**7,
        max_open_requests_per_owner=10**6,
        max_body_bytes_per_minute=10**12,
        max_turns_per_owner=64,
        heartbeat=timedelta(seconds=10),
    ),
)
