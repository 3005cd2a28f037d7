"""What the handle of one session is made of: what it showed when it was looked at, and its larger verbs."""
