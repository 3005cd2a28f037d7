"""One SQLite file: a writer thread, readers, and how the file is opened."""
