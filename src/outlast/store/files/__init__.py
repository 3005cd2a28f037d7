"""Large and binary values outside the rows: in a folder or an object store."""
