"""Renders prompts in a thread for work. A very large one is passed on to a worker process.

Rendering takes a quarter of a second for each megabyte, some of it in calls that keep Python's lock: streams of others
would wait for it.
"""

from __future__ import annotations

import atexit
import pickle
from functools import lru_cache
from typing import Any, Final

from untemplate.templates import ChatTemplate

from .processes import Workers, packed

APART: Final = 256 * 1024
"""Bytes of messages and tools from which on a worker process renders them."""
_WORKERS: Final = Workers()
atexit.register(_WORKERS.close)


def render(template: ChatTemplate, messages: list[Any], **arguments: Any) -> str:
    """Return a prompt, as ``ChatTemplate.render`` does.

    Raises:
        TemplateError: as ``ChatTemplate.render``.
        Abandoned: the client has left.
    """
    job = b""
    if template.now is None:  # otherwise it may be a function that cannot be sent
        job = packed(_rendered, pickle.dumps(template), messages, **arguments)
    if len(job) < APART:
        return template.render(messages, **arguments)
    text: str = _WORKERS.do(job, str)
    return text


def _rendered(template: bytes, messages: list[Any], **arguments: Any) -> str:
    return _loaded(template).render(messages, **arguments)


@lru_cache(16)
def _loaded(template: bytes) -> ChatTemplate:
    """Return a template of the worker process, compiled once."""
    found: ChatTemplate = pickle.loads(template)
    return found
