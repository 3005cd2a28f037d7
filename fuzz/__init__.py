"""Nonsense for the server: generated requests against one that holds sessions and tasks in every state."""
