"""Routes about the server: what it is, how it does, who may use it."""
