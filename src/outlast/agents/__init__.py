"""What surrounds the user's agent: how it is entered, what it is given, and what it is asked."""
