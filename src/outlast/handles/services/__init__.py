"""What all handles share: the database, what is known of agents and tools, how things are shown."""
