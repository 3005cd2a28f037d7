"""Which tools may be called, with which arguments: rules, and lists of them along a chain of sessions."""
