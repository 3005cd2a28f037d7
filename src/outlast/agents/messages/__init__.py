"""A conversation's messages: stored, read back, masked, and made harmless."""
