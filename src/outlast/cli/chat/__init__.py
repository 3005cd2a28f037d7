"""`outlast chat`."""
