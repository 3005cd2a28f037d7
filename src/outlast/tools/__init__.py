"""What an agent can do: hints, outcomes, redaction."""
