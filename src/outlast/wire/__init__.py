"""What goes over HTTP, for both ends of it: light to import, so that clients start fast."""
