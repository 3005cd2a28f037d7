"""One attempt of a turn: load, run the agent, commit each step, settle its calls, end."""
