"""An agent that tells a short story slowly, for the recording of a server that is killed in the middle of it."""

from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.testing import ScriptedModel, text

STORY = """The town had only **a ferry** for six hundred years. When the river froze in the winter of 1708, people
simply walked; when the ice broke, nobody got across for eleven days.

In 1871 the council asked three builders for a bridge:

1. one of wood, that would last a generation
2. one of stone, that nobody could pay for
3. one of iron, that the newspapers called ugly

They took the iron one. It is still there."""

agent = Agent(ScriptedModel(lambda _: text(STORY, chunk=5, pause=0.06)), name="historian")
app = Outlast(agent, database="recorded.db", settings=Settings(durability="normal", max_requests_per_minute=10**6))
