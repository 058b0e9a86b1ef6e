"""The fixtures of all tests."""

from tests.conftest import count, without_our_own_variable

__all__ = ["count", "without_our_own_variable"]
