"""Processes that serve and work: `outlast serve` and `outlast worker`."""
