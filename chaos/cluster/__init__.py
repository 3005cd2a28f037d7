"""Chaos in a cluster: PostgreSQL, API processes, worker processes, clients, and faults in all of them.

`python -m chaos.cluster` kills, freezes and stalls processes, restarts the database and cuts connections while
clients talk and stream through whichever API process answers. When everything has settled, a judge that was not
there reads the database, the tools' ledger and the clients' record.
"""
