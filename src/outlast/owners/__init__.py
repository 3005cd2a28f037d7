"""Owners: who may come in, what they spend, and everything that happens to what is theirs."""
