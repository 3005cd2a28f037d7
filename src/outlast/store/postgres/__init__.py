"""PostgreSQL: transactions, connections of one's own, jobs, and how a database is opened."""
