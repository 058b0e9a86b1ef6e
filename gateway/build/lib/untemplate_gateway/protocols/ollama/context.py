"""The ``context`` of Ollama's generate API: a conversation as a list of numbers, which clients send back unchanged.

Ollama's numbers are token ids. To clients they mean nothing, so here they hold the messages, compressed: any engine and
template can then continue the conversation.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, Literal

import msgspec

from ...errors import bad_request

_BYTES: Final = 3
"""Bytes in a number."""
_MOST: Final = 32 << 20
"""Most bytes of a conversation."""


class _Message(msgspec.Struct):
    role: Literal["system", "user", "assistant"]
    content: str


_decoder: Final = msgspec.json.Decoder(list[_Message])


def to_numbers(messages: list[dict[str, Any]]) -> list[int]:
    """Return messages, which have a role and a text, as a ``context``."""
    data = zlib.compress(msgspec.json.encode(messages))
    data += bytes(-len(data) % _BYTES)
    return [int.from_bytes(data[i : i + _BYTES], "big") for i in range(0, len(data), _BYTES)]


def from_numbers(numbers: list[int]) -> list[dict[str, Any]]:
    """Return the messages of a ``context``.

    Raises:
        ApiError: it is not a context of this gateway.
    """
    try:
        packed = b"".join(number.to_bytes(_BYTES, "big") for number in numbers)
        found = _decoder.decode(zlib.decompressobj().decompress(packed, _MOST))
    except (zlib.error, msgspec.DecodeError, OverflowError):
        raise bad_request("context", "is not one that this gateway has returned") from None
    return [msgspec.structs.asdict(message) for message in found]
