"""Renders prompts in a thread for work. A very large one is passed on to a worker process.

Rendering takes a quarter of a second for each megabyte, some of it in calls that keep Python's lock: streams of others
would wait for it.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any, Final

from untemplate.templates import ChatTemplate

from .processes import Workers, packed

APART: Final = 256 * 1024
"""Bytes of messages and tools from which on a worker process renders them."""
_WORKERS: Final = Workers()
_loaded: Final = lru_cache(16)(pickle.loads)
"""Loads a template in a worker process. It is compiled once."""


def render(template: ChatTemplate, messages: list[Any], **arguments: Any) -> str:
    """Return a prompt, as ``ChatTemplate.render`` does.

    Raises:
        TemplateError: as ``ChatTemplate.render``.
        Abandoned: the client has left.
    """
    if template.now is None:  # otherwise it may be a function that cannot be sent
        job = packed(_rendered, pickle.dumps(template), messages=messages, **arguments)
        if len(job) >= APART:
            text: str = _WORKERS.do(job, str)
            return text
    return template.render(messages, **arguments)


def _rendered(template: bytes, /, **arguments: Any) -> str:
    text: str = _loaded(template).render(**arguments)
    return text
