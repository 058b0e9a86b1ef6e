"""Plugins for other projects. Each module imports its project only when it is used."""
