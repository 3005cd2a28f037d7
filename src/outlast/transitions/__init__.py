"""Every state change: each one function of a transaction. No asyncio, no pydantic-ai."""
