"""The model's own tools: look at, wait for and cancel background work."""
