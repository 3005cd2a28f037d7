"""Sessions and turns: one stretch of agent work, resumable at every committed message."""
