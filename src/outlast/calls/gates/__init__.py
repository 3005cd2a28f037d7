"""What a call passes before it runs, one module each."""
