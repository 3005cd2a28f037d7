"""Durable background work with a state machine."""
