"""MCP servers of an agent: how long their calls may take, what they tell while they run, and what they ask."""
