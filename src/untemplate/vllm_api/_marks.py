"""The markers of reasoning in token ids.

* Text before the last turn start belongs to earlier messages. Reading begins after it, or in the output's own start
  state, and the first close decides.
* A marker that is one token is found only by its id; any other by the text of the ids.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, final

from .._internal.tokens.decoding import Vocabulary

__all__ = ["Marks"]

_TAIL: Final = 64
"""Ids at the end of a prompt that are read if no turn start is known."""


@final
class Marks:
    """The markers of reasoning, for one vocabulary.

    Args:
        known: the vocabulary.
        opens, closes: spellings of the markers that begin and end reasoning.
        turn_starts: spellings of what begins an assistant turn in a prompt.
        special: tokens that are their own text.
        turn_opens: True if reasoning is open where a turn starts.
        repeats: True if reasoning may open again after its close.
        drops: True if an opening marker inside reasoning is dropped; otherwise it is text.
    """

    def __init__(
        self,
        known: Vocabulary,
        *,
        opens: Iterable[str] = (),
        closes: Iterable[str] = (),
        turn_starts: Iterable[str] = (),
        special: Iterable[str] = (),
        turn_opens: bool = False,
        repeats: bool = False,
        drops: bool = False,
    ) -> None:
        self._opens = tuple(opens)
        self._closes = tuple(closes)
        self._turn_starts = tuple(turn_starts)
        self._turn_opens = turn_opens
        self._repeats = repeats
        self._drops = drops
        self._vocab = known.ids
        _, self._table = known.table(special)

    def is_end(self, ids: Sequence[int]) -> bool:
        """True if the last marker of the turn closes reasoning; False without a marker."""
        return self.last_opens(ids) is False

    def last_opens(self, ids: Sequence[int]) -> bool | None:
        """True if the last marker of the turn opens reasoning, False if it closes it; ``None`` without a marker."""
        found = self._find(self._output(ids, False)[0])
        return found[-1][2] if found else None

    def ends_in(self, ids: Sequence[int], new: int) -> bool:
        """True if a close ends in the last ``new`` ids."""
        # A marker of several tokens may begin before them. It has at most as many tokens as characters.
        back = max(map(len, self._closes), default=1) - 1
        first = max(0, len(ids) - new - back)
        return any(not opens and first + end > len(ids) - new for _, end, opens in self._find(ids[first:]))

    def content(self, ids: Sequence[int], opened: bool) -> list[int]:
        """Return the ids after the first close: all of them if there is no reasoning, none if it does not end."""
        ids, opened = self._output(ids, opened)
        for _, end, opens in self._find(ids):
            if not opens:
                return list(ids[end:])
            opened = True
        return [] if opened else list(ids)

    def after_last_close(self, ids: Sequence[int]) -> list[int]:
        """Return the ids of the turn after its last close; all of them if nothing in it closes."""
        ids = self._output(ids, False)[0]
        ends = [end for _, end, opens in self._find(ids) if not opens]
        return list(ids[ends[-1] :]) if ends else list(ids)

    def count(self, ids: Sequence[int], opened: bool) -> int:
        """Count the ids of an output inside reasoning, without its markers."""
        since = 0 if opened else -1
        total = 0
        for begin, end, opens in self._find(ids):
            if opens and since == 0 and self._is_blank(ids[:begin]):
                since = end  # It repeats the marker of the prompt, and is dropped.
            elif opens and (since < 0 or self._drops):
                total += begin - since if since >= 0 else 0
                since = end
            elif not opens and since >= 0:
                total += begin - since
                since = -1
                if not self._repeats:
                    return total
        return total if since < 0 else total + len(ids) - since

    def opened_by(self, prompt_ids: Sequence[int]) -> bool | None:
        """True if a prompt leaves reasoning open, False if not; ``None`` if that is not known."""
        turn = self._turn(prompt_ids)
        if turn >= 0:
            opened = self._turn_opens
            for _, _, opens in self._find(prompt_ids[turn:]):
                opened = opens
            return opened
        # Without a turn start, only the very end of a prompt is certain not to be the user's text.
        last = list(prompt_ids[-_TAIL:])
        while last and self._is_blank(last[-1:]):
            last.pop()
        found = self._find(last)
        return found[-1][2] if found and found[-1][1] == len(last) else None

    def _is_blank(self, ids: Sequence[int]) -> bool:
        return not any((self._table.bytes_of(token) or b"?").strip() for token in ids)

    def _output(self, ids: Sequence[int], opened: bool) -> tuple[Sequence[int], bool]:
        turn = self._turn(ids)
        return (ids, opened) if turn < 0 else (ids[turn:], self._turn_opens)

    def _turn(self, ids: Sequence[int]) -> int:
        """Return the index of the first id after the last turn start, or -1."""
        best = -1
        for literal in self._turn_starts:
            wanted = literal.encode("utf-8", "surrogatepass")
            lead = self._lead(literal)
            for at in range(len(ids) - 1, best, -1):
                # A special token at its beginning counts only by id: a user may have spelled it.
                if (ids[at] != lead) if lead >= 0 else not wanted.startswith(self._table.bytes_of(ids[at]) or b"?"):
                    continue
                size, end = 0, at
                while size < len(wanted) and end < len(ids):
                    size += len(self._table.bytes_of(ids[end]) or b"")
                    end += 1
                if b"".join(self._table.bytes_of(i) or b"" for i in ids[at:end]).startswith(wanted):
                    best = max(best, end)
                    break
        return best

    def _lead(self, literal: str) -> int:
        """Return the id of the special token that a literal begins with, or -1."""
        for size in range(len(literal), 2, -1):
            if literal[0] in "<[" and literal[size - 1] in ">]" and literal[:size] in self._vocab:
                return self._vocab[literal[:size]]
        return -1

    def _find(self, ids: Sequence[int]) -> list[tuple[int, int, bool]]:
        """Return (begin, end, True if it opens) of each marker, in order, as indices of ids."""
        single: dict[int, bool] = {}
        spelled: list[tuple[bytes, bool]] = []
        for literals, opens in ((self._opens, True), (self._closes, False)):
            for literal in literals:
                if literal in self._vocab:
                    single[self._vocab[literal]] = opens
                else:
                    spelled.append((literal.encode("utf-8", "surrogatepass"), opens))
        found = [(at, at + 1, single[token]) for at, token in enumerate(ids) if token in single]
        if spelled:
            found += self._spelled(ids, spelled)
            found.sort()
        return found

    def _spelled(self, ids: Sequence[int], literals: list[tuple[bytes, bool]]) -> list[tuple[int, int, bool]]:
        pieces = [self._table.bytes_of(token) or b"" for token in ids]
        ends = list(accumulate(map(len, pieces)))
        data = b"".join(pieces)
        found = []
        for literal, opens in literals:
            at = data.find(literal)
            while at >= 0:
                found.append((bisect_right(ends, at), bisect_left(ends, at + len(literal)) + 1, opens))
                at = data.find(literal, at + len(literal))
        return found
