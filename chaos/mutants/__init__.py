"""Mutants: the code is broken on purpose, one promise at a time, and a test must notice.

Each mutant is data: what to change, and which test or chaos run fails because of it. They are tried on a copy
of the tree. A mutant that nothing notices, or whose code is no longer there, fails the run.
"""
