"""The app of M19: the one that the server benchmarks serve, whose retention begins a few seconds after its start."""

from datetime import timedelta

from bench.server_app import app
from outlast.duties import retention

__all__ = ["app"]

retention.EVERY = timedelta(seconds=5)
