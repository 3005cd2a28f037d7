"""The app whose costs are measured: the turn of `turn_work`, on the database that the environment names."""

import os

from bench.turn_work import scripted_agent
from outlast import Outlast, Settings

DATABASE = "BENCH_DATABASE"

app = Outlast(
    scripted_agent()[0],
    database=os.environ.get(DATABASE, "postgresql:///outlast"),
    settings=Settings(
        max_turns_per_owner=128,
        max_turns_per_worker=128,
        max_requests_per_minute=10**7,
        max_open_requests_per_owner=10**6,
        max_body_bytes_per_minute=10**12,
    ),
)
