"""Calls and arguments in JSON."""
