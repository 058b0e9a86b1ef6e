"""Incremental readers, one per argument syntax: they take the model's text and put JSON text."""
