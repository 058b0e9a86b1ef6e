"""Images in messages, for engines that take them next to a rendered prompt."""

from __future__ import annotations

import base64
import contextlib
import re
from typing import Any, Final

from .errors import bad_request

_DATA: Final = re.compile(r"data:image/[\w.+-]+;base64,")


def taken_out(messages: list[dict[str, Any]], marker: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Return the messages with ``marker`` in place of each image, and the images in their order.

    Args:
        marker: text that stands for an image in the prompt; empty: the chat template writes it, for a part
            ``{"type": "image"}``.

    Raises:
        ApiError: an image is not a data URL: the gateway fetches nothing.
    """
    images: list[bytes] = []

    def part_of(part: Any, where: str) -> Any:
        if isinstance(part, str) or part.get("type") not in ("image_url", "image"):
            return part
        images.append(_decoded(part, where))
        return {"type": "text", "text": marker} if marker else {"type": "image"}

    changed = []
    for i, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, list):
            parts = [part_of(part, f"messages[{i}].content[{k}]") for k, part in enumerate(content)]
            message = {**message, "content": parts}
        changed.append(message)
    return changed, images


def _decoded(part: dict[str, Any], where: str) -> bytes:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if isinstance(url, str) and (head := _DATA.match(url)) is not None:
        with contextlib.suppress(ValueError):
            return base64.b64decode(url[head.end() :], validate=True)
    raise bad_request(f"{where}.image_url", "must be a data URL of an image in base64: the gateway fetches nothing")
