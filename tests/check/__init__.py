"""Tests of `untemplate check`."""
