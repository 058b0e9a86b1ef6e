"""Incremental writers, one per argument syntax: model text in, JSON text out; each says when its value has ended."""
