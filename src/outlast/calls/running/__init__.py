"""Where the code of a call runs: its threads, its asyncio tasks, its toolsets kept open."""
