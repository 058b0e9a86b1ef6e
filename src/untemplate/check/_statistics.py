"""Intervals for shares that were measured a few times."""

from __future__ import annotations

import math

_Z = 1.96
"""Standard deviations of a two-sided interval of 95 %."""


def interval(hits: int, total: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share; (0, 1) if nothing was measured.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    if not total:
        return 0.0, 1.0
    share = hits / total
    middle = share + _Z * _Z / (2 * total)
    half = _Z * math.sqrt(share * (1 - share) / total + _Z * _Z / (4 * total * total))
    scale = 1 + _Z * _Z / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def share(hits: int, total: int) -> str:
    """Return a share with its interval as text: ``4 of 5 (38–96 %)``."""
    low, high = interval(hits, total)
    return f"{hits} of {total} ({100 * low:.0f}–{100 * high:.0f} %)"
