"""Suggestions for names that do not exist, for messages of errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["brief", "close_names", "did_you_mean"]


def close_names(name: str, valid: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the valid names that are nearest to an unknown one, the nearest first.

    ``untemplate:NAME`` is how plugins write a name: there it is ``NAME``.

    Args:
        name: the unknown name.
        valid: all valid names.
        most: how many to return.
    """
    import difflib  # takes a millisecond, and this is rare

    listed = list(valid)
    bare = name.removeprefix("untemplate:")
    return (bare,) if bare in listed else tuple(difflib.get_close_matches(bare, listed, n=most, cutoff=0.7))


def did_you_mean(names: Sequence[str]) -> str:
    """Return the part of an error message that suggests names: ``; did you mean 'a' or 'b'?``; empty without names."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def brief(error: Exception) -> str:
    """Return the message of an error for a terminal: that of an unknown format does not list all names."""
    return getattr(error, "short", "") or str(error)
