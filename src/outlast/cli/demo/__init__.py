"""`outlast demo`."""
