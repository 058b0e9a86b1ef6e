"""JSON schemas of tools: reading them, and validation of arguments."""
