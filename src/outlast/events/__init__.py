"""Numbered facts of a session, and how they are read."""
