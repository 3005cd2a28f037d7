"""Servers of other projects that do the turn of M2 over HTTP, each in a virtual environment of its own."""
