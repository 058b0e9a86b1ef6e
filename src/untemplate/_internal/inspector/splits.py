"""The split explorer: an output cut in two gives the same message, wherever it is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from ..output_parser import OutputParser
from ..stream import Stream
from .cases import Case, open_stream, parser_for_tokens, pieces, same_result
from .units import Units

_CHARACTERS: Final = 4_000_000
"""Most characters that are parsed to try splits."""


def every_split(parser: OutputParser, case: Case) -> dict[str, Any]:
    """Cut the output in two at every place, or, if it is long, at the places near markers and at even distances.

    Returns:
        ``splits`` and ``tried`` with their numbers, and ``different`` with the places (in UTF-16 code units) of those
        that give another message; there should be no such place.
    """
    parser = parser_for_tokens(parser, case, parser.policy)
    whole = _parsed(parser, case, [])
    wanted = same_result(whole)
    count = max(len(pieces(case)) - 1, 0)
    room = max(_CHARACTERS // max(len(case.text), 1), 50)
    tried = range(1, count + 1) if count <= room else _chosen(parser, case, count, room)
    places = Units(case.text)
    different = [places.of(_place(case, cut)) for cut in tried if same_result(_parsed(parser, case, [cut])) != wanted]
    return {"splits": count, "tried": len(tried), "different": different}


def one_split(parser: OutputParser, case: Case, place: int) -> dict[str, Any]:
    """Return the deltas of both parts of the output, cut at a place in UTF-16 code units, and those of its end."""
    parser = parser_for_tokens(parser, case, parser.policy)
    cut = _cut_at(case, Units(case.text).character(place))
    stream = open_stream(parser, case)
    groups = []
    for text, ids in _parts(case, [cut]):
        groups.append([stream.dump(delta) for delta in stream.feed(text, ids)])
    groups.append([stream.dump(delta) for delta in stream.finish(case.finish_reason)])
    first, second, end = groups
    same = same_result(stream) == same_result(_parsed(parser, case, []))
    return {"at": Units(case.text).of(_place(case, cut)), "first": first, "second": second, "end": end, "same": same}


def _parts(case: Case, cuts: list[int]) -> list[tuple[str, list[int]]]:
    """Return the output in parts, each of several of its pieces."""
    if not case.tokens:
        edges = [0, *cuts, len(case.text)]
        return [(case.text[a:b], []) for a, b in pairwise(edges)]
    edges = [0, *cuts, len(case.tokens)]
    parts = [case.tokens[a:b] for a, b in pairwise(edges)]
    return [("".join(text for _, text in part), [token for token, _ in part]) for part in parts]


def _parsed(parser: OutputParser, case: Case, cuts: list[int]) -> Stream:
    stream = open_stream(parser, case)
    for text, ids in _parts(case, cuts):
        stream.feed(text, ids)
    stream.finish(case.finish_reason)
    return stream


def _place(case: Case, cut: int) -> int:
    """Return the character before which a cut is."""
    return cut if not case.tokens else sum(len(text) for _, text in case.tokens[:cut])


def _cut_at(case: Case, character: int) -> int:
    """Return the last cut that is not after a character."""
    if not case.tokens:
        return character
    cut = place = 0
    while cut < len(case.tokens) and place + len(case.tokens[cut][1]) <= character:
        place += len(case.tokens[cut][1])
        cut += 1
    return cut


def _chosen(parser: OutputParser, case: Case, count: int, room: int) -> list[int]:
    """Return the cuts at the borders of regions, and others at even distances."""
    borders = {span.start for span in _parsed(parser, case, []).result().spans}
    near = sorted({_cut_at(case, place + d) for place in borders for d in (-1, 0, 1) if place + d > 0})
    step = max(2 * count // room, 1)
    return sorted({cut for cut in [*near[: room // 2], *range(1, count + 1, step)] if 1 <= cut <= count})
