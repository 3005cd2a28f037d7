"""Routes about background work: tasks, what they ask, what they wait for."""
