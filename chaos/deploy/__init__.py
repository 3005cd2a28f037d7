"""A deploy under load: a new version with another schema, a renamed tool and without one agent replaces the old one.

`python -m chaos.deploy` starts the old version, loads it, migrates, starts the new one and sends the old one away,
process by process. When everything has settled, a judge that was not there reads what is left.
"""
