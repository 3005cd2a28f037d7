"""An attempt of a turn or a task on this worker."""
