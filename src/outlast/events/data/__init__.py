"""What `data` of an event holds, a TypedDict for each type. A field that came later may be missing in older events."""
