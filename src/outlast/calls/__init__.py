"""One tool invocation: how it is run, watched, cancelled and accounted for."""
