"""Kinds of task: what is durable of each, as data."""
