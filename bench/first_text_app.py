"""The app of M16: a model that answers at once, and one that begins at once and goes on for a while."""

import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from bench.cost_app import DATABASE
from outlast import Outlast, Settings
from outlast.testing import ScriptedModel, Step, delay, last_user_text, text

AT_ONCE, GOES_ON = "hi", "tell me"


def _reply(messages: list[ModelMessage]) -> Step:
    if last_user_text(messages) == GOES_ON:
        return [text("Hello. "), delay(0.1), text("The river is low.", chunk=5)]
    return "Hello."


app = Outlast(
    Agent(ScriptedModel(_reply), name="bench"),
    database=os.environ.get(DATABASE, "bench.db"),
    settings=Settings(max_requests_per_minute=10**7, max_open_requests_per_owner=10**6),
)
