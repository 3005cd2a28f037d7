"""Values and text from elsewhere: made fit to be stored, read back, logged and shown."""
