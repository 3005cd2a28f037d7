"""Verbs that ask a server, one module per noun."""
