"""Schedules: made and changed, and fired when they are due."""
