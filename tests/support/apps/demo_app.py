"""The agent of `outlast demo`, for pictures of the console: what it says and does looks like somebody's work."""

from outlast import Outlast, Settings
from outlast.cli.demo.bookkeeper import make_agent

app = Outlast(make_agent(), database="demo.db", settings=Settings(durability="normal", max_requests_per_minute=10**6))
