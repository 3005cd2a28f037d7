"""The AI SDK's UI message stream as a projection of the event log."""
