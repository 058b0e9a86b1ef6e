"""JSON as models write it: its words, an incremental scanner, conversion of text to typed values, and repair."""
