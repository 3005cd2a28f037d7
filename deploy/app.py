"""The app of the image, until you bring your own: an agent that answers without a key, or the model named by MODEL."""

import os

from pydantic_ai import Agent

from outlast import Outlast
from outlast.testing import ScriptedModel, last_user_text

model = os.environ.get("MODEL") or ScriptedModel(lambda request: f"You said: {last_user_text(request)}")
agent = Agent(model, name="agent")
app = Outlast(agent, database=os.environ.get("DATABASE_URL", "/data/outlast.db"))
