"""Work that recurs."""
