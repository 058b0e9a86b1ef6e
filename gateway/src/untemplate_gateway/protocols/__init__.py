"""API dialects: the body of a request in, bytes of a response out.

There is a package for each API. ``request.py`` declares the fields of its requests and turns them into a `Generation`,
``response.py`` writes responses, whole and streamed, and ``__init__.py`` joins both to a `Dialect`. All of it is pure:
no I/O, no engine, no clock.
"""

from .base import Dialect
from .encoding import Writer

__all__ = ["Dialect", "Writer", "dialects"]


def dialects() -> dict[str, Dialect]:
    """Return the dialect of each path."""
    from . import ollama
    from .anthropic import MESSAGES
    from .chat import CHAT
    from .completions import COMPLETIONS
    from .generate import GENERATE
    from .responses import RESPONSES

    return {
        "/v1/chat/completions": CHAT,
        "/v1/completions": COMPLETIONS,
        "/v1/responses": RESPONSES,
        "/v1/messages": MESSAGES,
        "/inference/v1/generate": GENERATE,
        "/api/chat": ollama.CHAT,
        "/api/generate": ollama.GENERATE,
    }
