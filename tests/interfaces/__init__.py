"""The documented interfaces as a table: one row for each statement about a name, a default, or a behaviour."""
