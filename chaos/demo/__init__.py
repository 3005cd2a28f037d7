"""A cluster to watch: PostgreSQL, two servers, three workers, and a play in which they are killed one by one.

`python -m chaos.demo` shows it in the terminal. Everything shown comes from real processes; only the model is scripted.
"""
