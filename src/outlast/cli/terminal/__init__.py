"""What the command writes to a terminal, and how."""
