"""What people see of a session, folded from its events."""
