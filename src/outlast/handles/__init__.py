"""What a program holds: sessions, a session, a turn, tasks, keys, the feed, what was used."""
