"""Markers around calls, for projects that find calls between two of them."""

from __future__ import annotations

from ..format import Format

__all__ = ["markers_around_calls"]


def markers_around_calls(fmt: Format, project: str) -> tuple[str, str]:
    """Return the markers around calls: of the section where there is one, otherwise of a call.

    Raises:
        ValueError: the Format does not have them.
    """
    for way in fmt.tools[:1]:
        for first, last in ((way.section_open, way.section_close), (way.call_open, way.call_close)):
            if first is not None and last is not None and first.text.strip() and last.text.strip():
                return first.text.strip(), last.text.strip()
    raise ValueError(f"format {fmt.name!r}: {project} finds calls between two markers, and its calls do not have both")
