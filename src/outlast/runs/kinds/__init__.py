"""Kinds of task: how each is run on a worker."""
