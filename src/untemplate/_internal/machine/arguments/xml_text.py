"""XML entities in tagged names and values."""

from __future__ import annotations

import re
from typing import Final

_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
ENTITY_BEGUN: Final = re.compile(r"&[#0-9A-Za-z]{0,8}\Z")
_CHARACTERS: Final = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}


def unescape_xml(text: str) -> str:
    """Return ``text`` with XML's five entities and the numbered ones replaced. HTML's other entities are text."""
    return _ENTITY.sub(_entity, text) if "&" in text else text


def masked_xml(text: str) -> str:
    """Return ``text`` with each entity replaced by as many letters, so that what else there is can be checked."""
    return _ENTITY.sub(lambda found: "x" * len(found.group()), text) if "&" in text else text


def _entity(found: re.Match[str]) -> str:
    word = found.group()
    if word[1] != "#":
        return _CHARACTERS[word]
    code = int(word[3:-1], 16) if word[2] in "xX" else int(word[2:-1])
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else word
