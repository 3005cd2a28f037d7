"""State changes of tasks: accepted, moved, asked, answered, ended, and the wakes they make."""
