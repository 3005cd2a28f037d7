"""One attempt of a turn: load, run the agent, commit each step, decide its open calls, end."""
