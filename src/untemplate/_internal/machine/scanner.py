"""Token ids: which literals in the text are markers, and which were only spelled by ordinary tokens.

* Ids come with their text or before it, never after it. Because text may lag behind its ids, ids authorise literals in
  the text in order.
* With a table of token texts the place of a marker is known to the byte. Without it, the first literal at or after the
  text that was known when the id came is the marker.
* An id whose text has not come before the text of the next id authorises nothing.
* Without the table, more literals than ids in one stretch cannot be told apart. All of them count as markers, and
  that is reported.
* Deltas without special tokens, while none is awaited, are most; they do not come here one by one but together, when a
  special token comes or when there are many (``count``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, Protocol, final

from .growing import grown, own
from .ledger import MAX_NOTES
from .lexer import literal_set


class TokenTexts(Protocol):
    """The texts of token ids."""

    @property
    def sizes(self) -> Mapping[int, int]:
        """token id → the number of its bytes, of those that ``bytes_of`` has returned before."""

    def bytes_of(self, token: int) -> bytes | None:
        """Return the bytes of a token; None if it is unknown."""


_REPLACEMENT: Final = "�"
_NOTHING: Final = "(?!)"
"""Pattern that matches nowhere; an empty one matches everywhere."""
_FEW: Final = 64
"""Places of markers that are kept before any are forgotten. It bounds memory, and changes no result."""
_MOST_LITERALS: Final = 256
"""Most literals whose special tokens are remembered. Some hold text of the model, so there may be any number."""
_MOST_AWAITED: Final = 4096
"""Most ids of one literal whose text is awaited after a delta; beyond that, the oldest authorise nothing."""
# Empty ones, which outputs share until they have some.
_NO_PLACES: Final[set[int]] = set()
_NO_NUMBERS: Final[list[int]] = []
_ZERO: Final[list[int]] = [0]
_NONE_AWAITED: Final[deque[tuple[str, int, int]]] = deque()
_NONE_PENDING: Final[dict[str, deque[tuple[int, int, int]]]] = {}
NO_STRETCHES: Final[list[tuple[int, int]]] = []


def check_ids(ids: Sequence[object]) -> None:
    """Refuse texts in place of token ids.

    Raises:
        TypeError: an id is not an integer.
    """
    try:
        if type(sum(ids)) is int:  # type: ignore[arg-type]
            return
    except TypeError:
        pass
    for place, token in enumerate(ids):
        if not hasattr(token, "__index__"):
            raise TypeError(
                f"feed() token_ids[{place}]: expected a token id (int), got {type(token).__name__}: {token!r:.80}"
            )


def _size(text: str) -> int:
    """Return the number of bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _characters(data: bytes, size: int) -> int:
    """Return the number of whole characters in the first ``size`` bytes of a text."""
    while 0 < size < len(data) and data[size] & 0xC0 == 0x80:
        size -= 1
    return len(data[:size].decode("utf-8", "surrogatepass"))


@final
class SpecialTokens:
    """The special tokens of a model (text → id), prepared once for all of its outputs. ``unknown``: those that are not
    the Format's."""

    def __init__(self, special: dict[str, int], unknown: dict[str, int]) -> None:
        self.own: dict[int, str] = {i: text for text, i in special.items()}
        self.unknown: dict[int, str] = {i: text for text, i in unknown.items()}
        self.literals: dict[int, str] = {**self.unknown, **self.own}
        """All of them: id → text."""
        self.ids: frozenset[int] = frozenset(self.literals)
        self.places: dict[str, tuple[int, ...]] = {}
        """What `places_in` has found."""
        self.longest: int = max(map(len, special), default=0)
        longest_first = sorted(special, key=len, reverse=True)
        self.pattern: re.Pattern[str] = re.compile("|".join(map(re.escape, longest_first)) or _NOTHING)

    def places_in(self, literal: str) -> tuple[int, ...]:
        """Return where special tokens begin in a literal of the Format, or in several of them that touch."""
        found = self.places.get(literal)
        if found is None:
            found = tuple([match.start() for match in self.pattern.finditer(literal)])
            if len(self.places) >= _MOST_LITERALS:
                self.places.clear()
            self.places[literal] = found
        return found


@final
class TokenScanner:
    """Follows text and ids of one output. Offsets are in characters of the output."""

    def __init__(self, tokens: SpecialTokens, texts: TokenTexts, stripped: bool = False) -> None:
        """``stripped``: the text comes without special tokens."""
        self._tokens: SpecialTokens = tokens
        self._texts: TokenTexts = texts
        self._sizes: Mapping[int, int] = texts.sizes
        self._places: dict[str, tuple[int, ...]] = tokens.places
        self._stripped: bool = stripped
        self.proves_markers: bool = False
        """True if a marker that is one special token counts only with its id, once ids have come."""
        self.authorised: set[int] = _NO_PLACES
        """Places where markers begin that have a token id."""
        self.unknown_places: list[tuple[int, int]] = NO_STRETCHES
        """Places of special tokens that are not the Format's, and that have a token id; the machine removes them."""
        self._many: int = _FEW
        """Number of places above which those before the text that is being read are forgotten."""
        self.ambiguous: list[int] = _NO_NUMBERS
        self.active: bool = False
        """True if any ids have come."""
        self._awaited: deque[tuple[str, int, int]] = _NONE_AWAITED
        """Unknown special tokens whose text has not come, each with the characters known when its id came, and its
        place in bytes or -1."""
        self._gaps: list[int] = _NO_NUMBERS
        """Places in bytes of unknown tokens whose ids have come and whose text never will, in order."""
        self._shifts: list[int] = _ZERO
        """Bytes of the first 0, 1, 2 … of them."""
        self._held: str = ""
        """Text that may be the beginning of the first awaited token."""
        self._carry: str = ""
        self._seen: int = 0
        self._seen_bytes: int = 0
        self._id_bytes: int = 0
        self._exact: bool = True
        self._pending: dict[str, deque[tuple[int, int, int]]] = _NONE_PENDING
        """Literal → (its order, characters known when its id came, its place in bytes or -1), by order. Without the
        table, ids that came with one delta have one order: they may belong to its literals in another way."""
        self.special_ids: frozenset[int] = tokens.ids
        self.quiet: bool = True
        """True if no special token's text is awaited."""
        self._order: int = 0
        """Order of the last id that came."""
        self._passed: int = 0
        """Order of the last id whose text has come."""

    def read(self, text: str, ids: Sequence[int]) -> str:
        """Take a delta that may hold special tokens. Return its text, with stripped markers restored."""
        if ids:
            if self._take_in_step(text, ids):
                return text
            if self._stripped:
                text = self._restore(text, ids)
            self._expect(text, ids)
        window = self._carry + text
        # Markers after a token whose text never comes are found once that is known.
        shown = self._find_awaited(text) if self._awaited else text
        if self.active:
            self._find(window)
        self._seen += len(text)
        self._seen_bytes += _size(text)
        self._carry = self._tail(window)
        if ids:
            self._forget_oldest()
        self.quiet = not (self._awaited or self._held or any(map(self._is_awaited, self._pending.values())))
        return shown

    def count(self, texts: list[str], ids: list[int]) -> None:
        """Take deltas without special tokens that have come while none was awaited."""
        text = "".join(texts)
        if ids:
            if self._seen_bytes > self._id_bytes:  # text has come without ids: no place is known any more
                self._exact = False
            self._add_bytes(ids, text)
        self._seen += len(text)
        self._seen_bytes += _size(text)
        self._carry = self._tail(self._carry + text)

    def _take_in_step(self, text: str, ids: Sequence[int]) -> bool:
        """Take a delta whose text is that of its ids, and whose special tokens are those among the ids, one for one.
        If the text of an id had not come, a copy of its text could be taken for it."""
        if self._seen_bytes != self._id_bytes or self._stripped or self._gaps or not (self.quiet and self._exact):
            return False
        size = _size(text)
        if len(ids) == 1:
            if text != self._tokens.literals.get(ids[0]):
                return False
            if ids[0] in self._tokens.own:
                self._authorise([self._seen])
            else:
                self.unknown_places = grown(self.unknown_places, (self._seen, self._seen + len(text)))
        else:
            try:
                if sum(map(self._sizes.__getitem__, ids)) != size:
                    return False
            except KeyError:  # it is unknown, or has not been read before
                return False
            literals = self._tokens.literals
            found = list(self._tokens.pattern.finditer(text))
            if [match.group() for match in found] != [literals[token] for token in filter(literals.__contains__, ids)]:
                return False
            self._authorise([self._seen + match.start() for match in found])
        self._seen += len(text)
        self._seen_bytes += size
        self._id_bytes += size
        self._carry = self._tail(self._carry + text)
        return True

    def _authorise(self, places: list[int]) -> None:
        """Take note that these places have a token id."""
        self.authorised = own(self.authorised)
        self.authorised.update(places)

    def _is_awaited(self, waiting: deque[tuple[int, int, int]]) -> bool:
        """True if one of these ids of a literal may still authorise it."""
        return bool(waiting) and waiting[-1][0] >= self._passed

    def _tail(self, text: str) -> str:
        """Return the end of this text in which a literal may have begun that the next text completes."""
        return text[max(len(text) - self._tokens.longest + 1, 0) :]

    def _add_bytes(self, ids: Sequence[int], text: str) -> None:
        """Count the bytes of tokens that come with this text."""
        if not self._exact or not ids:
            return
        first = self._id_bytes == 0 and self._seen == 0
        try:
            self._id_bytes += sum(map(self._sizes.__getitem__, ids))
        except KeyError:  # one is unknown, or has not been read before
            for token in ids:
                data = self._texts.bytes_of(token)
                if data is None:
                    self._exact = False
                    return
                self._id_bytes += len(data)
        if first and text and text[0] != " " and (self._texts.bytes_of(ids[0]) or b"")[:1] == b" ":
            self._id_bytes -= 1  # detokenizers drop the first token's leading space

    def finish(self) -> str:
        """Return the text that is still held: no awaited token comes any more."""
        held = self._held
        self._held = ""
        return held

    def _find_awaited(self, text: str) -> str:
        """Find awaited tokens in the held text and the new one. Return both without the end that is held.

        An id whose text has not come before the text of the next one removes nothing."""
        start = self._seen - len(self._held)
        first_byte = self._seen_bytes - _size(self._held)
        text = self._held + text
        at = 0
        data = b"" if text.isascii() else text.encode("utf-8", "surrogatepass")
        while self._awaited:
            literal, known, byte = self._awaited[0]
            if byte >= 0 and self._exact:
                offset = byte - self._shifts[-1] - first_byte
                place = offset if offset < 0 or not data else _characters(data, offset)
            else:
                awaited = literal_set(literal)
                begin = max(at, known - start)
                place = awaited.end_before(awaited.pattern.search(text, begin), text, begin, False)
            if place >= 0 and text.startswith(literal, place):
                at = place + len(literal)
                self.unknown_places = grown(self.unknown_places, (start + place, start + at))
            elif place >= len(text):
                break
            elif place >= 0 and literal.startswith(text[place:]):
                self._held = text[place:]
                return text[:place]
            elif byte >= 0:
                if not self._gaps:
                    self._shifts = self._shifts.copy()
                self._gaps = grown(self._gaps, byte)
                self._shifts.append(self._shifts[-1] + _size(literal))
            self._awaited.popleft()
        self._held = ""
        return text

    def _forget_oldest(self) -> None:
        """Bound what is kept of ids whose text does not come."""
        for waiting in self._pending.values():
            while len(waiting) > _MOST_AWAITED:
                waiting.popleft()
        while len(self._awaited) > _MOST_AWAITED:
            self._awaited.popleft()
        if len(self._gaps) > 2 * _MOST_AWAITED:
            del self._gaps[:_MOST_AWAITED]
            del self._shifts[:_MOST_AWAITED]

    def follow(self, text: str, places: Sequence[int]) -> None:
        """Read a delta whose special tokens begin at these places of it."""
        self.active = True
        self._exact = False
        for place in places:
            if self._tokens.pattern.match(text, place) is not None:
                self._authorise([self._seen + place])
                continue
            size = max((len(t) for t in self._tokens.unknown.values() if text.startswith(t, place)), default=0)
            if size:
                found = (self._seen + place, self._seen + place + size)
                self.unknown_places = grown(self.unknown_places, found)
        self._seen += len(text)
        self._carry = self._tail(self._carry + text)

    def forget(self, before: int) -> None:
        """Forget the places before this one, if there are many."""
        if len(self.authorised) > self._many:
            self.authorised = {place for place in self.authorised if place >= before}
            self._many = _FEW + 2 * len(self.authorised)

    def proof(self, literal: str, start: int) -> int:
        """Return the number of special tokens in the literal at ``start`` if token ids prove all of them, else -1."""
        places = self._places.get(literal)
        if places is None:
            places = self._tokens.places_in(literal)
        for place in places:
            if start + place not in self.authorised:
                return -1
        return len(places)

    def holds(self, literal: str) -> bool:
        """True if the literal contains a special token."""
        return bool(self._tokens.places_in(literal))

    def _expect(self, text: str, ids: Sequence[int]) -> None:
        """Note the ids of special tokens, whose text comes now or later."""
        if self._seen_bytes > self._id_bytes:  # text has come without ids
            self._exact = False
        self._order += 1
        start = 0
        literals = self._tokens.literals
        for place in list(compress(range(len(ids)), map(literals.__contains__, ids))):
            self._add_bytes(ids[start:place], text)
            token = ids[place]
            self._expect_literal(token, literals[token])
            if token in self._tokens.own or not self._stripped:
                self._add_bytes(ids[place : place + 1], text)
            start = place + 1
        self._add_bytes(ids[start:], text)

    def _expect_literal(self, token: int, literal: str) -> None:
        place = self._id_bytes if self._exact else -1
        if token in self._tokens.own:
            self._order += place >= 0
            self._pending = own(self._pending)
            self._pending.setdefault(literal, deque()).append((self._order, self._seen, place))
        elif not self._stripped:
            self._awaited = own(self._awaited)
            self._awaited.append((literal, self._seen, place))

    def _find(self, window: str) -> None:
        """Find the literals that end in the new text, and match them with ids."""
        start = self._seen - len(self._carry)
        spelled: dict[str, list[int]] = {}
        matched: dict[str, int] = {}
        at = 0
        byte = self._seen_bytes - _size(self._carry)
        for found in self._tokens.pattern.finditer(window):
            if found.end() <= len(self._carry):
                continue
            literal = found.group()
            place = start + found.start()
            byte += _size(window[at : found.start()])
            at = found.start()
            if self._take(literal, place, byte):
                self._authorise([place])
                matched[literal] = matched.get(literal, 0) + 1
            else:
                spelled.setdefault(literal, []).append(place)
        if not self._exact:
            for literal, places in spelled.items():
                if literal in matched:
                    self._authorise(places)
                    self.ambiguous = [*self.ambiguous, *places[: MAX_NOTES - len(self.ambiguous)]]

    def _take(self, literal: str, place: int, here: int) -> bool:
        """Match the literal at this place, in characters and in bytes, with the first id that waits for it. Return
        False if its place is later, or if no id waits for it."""
        waiting = self._pending.get(literal)
        while waiting and waiting[0][0] < self._passed:
            waiting.popleft()
        if not waiting:
            return False
        order, known, byte = waiting[0]
        if place < known:
            return False
        if byte >= 0 and self._exact and here < byte - self._shifts[bisect_left(self._gaps, byte)]:
            return False
        self._passed = order
        waiting.popleft()
        return True

    def _restore(self, text: str, ids: Sequence[int]) -> str:
        """Restore stripped markers at the places of their ids among the other tokens of this delta."""
        markers = self._tokens.own
        if not any(map(markers.__contains__, ids)):
            return text
        ids = [token for token in ids if token not in self._tokens.unknown]
        plain = sum(1 for token in ids if token not in markers)
        parts = [] if plain else [text]
        for token in ids:
            if token in markers:
                parts.append(markers[token])
                continue
            plain -= 1
            data = self._texts.bytes_of(token) or b""
            size = len(data.decode("utf-8", "replace").replace(_REPLACEMENT, "")) if plain else len(text)
            parts.append(text[:size])
            text = text[size:]
        return "".join(parts)
