"""An app whose agent speaks for a little while, in many pieces."""

from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.testing import ScriptedModel, text

app = Outlast(
    Agent(ScriptedModel(lambda messages: [text("word " * 200, chunk=20, pause=0.02)]), name="speaker"),
    database="speaking.db",
    settings=Settings(durability="normal", max_requests_per_minute=10**6, max_open_requests_per_owner=10**4),
)
