"""JSON as models write it: scanned as it comes, repaired where that is unambiguous."""
