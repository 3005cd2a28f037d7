"""Chaos: real worker processes are killed, and another process judges what is left.

`python -m chaos` runs rounds of kills. In each round clients talk to one worker process after another;
each worker dies by SIGKILL at a named place or at a random instant. When the last one has settled, a judge
reads the database, the tools' ledger and the clients' record, and says what was lost, repeated, left
hanging or told wrongly.

`python -m chaos.cluster` does so with several processes on one PostgreSQL.
"""
