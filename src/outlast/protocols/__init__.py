"""Protocols of others as projections of the log: each turns events into its own frames, without a request."""
