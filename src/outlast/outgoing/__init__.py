"""Requests to addresses that somebody else has named: never to a private one, unless the operator allows it."""
