"""One repository per noun: plain functions of a connection or a unit of work, the same for both databases."""
