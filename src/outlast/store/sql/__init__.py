"""How statements are written and sent: compiled once, in bulk, and many writers' changes in one commit."""
