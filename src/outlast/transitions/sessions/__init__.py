"""State changes of what a session is: made, named, bound, permitted."""
