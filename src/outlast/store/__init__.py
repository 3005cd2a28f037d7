"""One database is the only truth: tables, repositories, transactions, files."""
