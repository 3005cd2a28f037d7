"""Watching a runtime: logs, metrics, stalls. Whatever fails here harms nothing that is watched."""
