"""Token ids: which bytes each id adds, and which ids became which part of a message."""
