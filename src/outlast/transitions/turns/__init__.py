"""State changes around turns: what waits in the inbox, what is due, how a turn begins and fails."""
