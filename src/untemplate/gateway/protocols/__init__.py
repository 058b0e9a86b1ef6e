"""API dialects: a request's body in, bytes of a response out.

The rule: pure functions and small writers, no I/O, no engine, no clock. One module per dialect.
"""

from .base import Dialect, Writer

__all__ = ["Dialect", "Writer", "dialects"]


def dialects() -> dict[str, Dialect]:
    """Path → the dialect that is spoken there."""
    from . import ollama
    from .anthropic import MESSAGES
    from .chat import CHAT
    from .completions import COMPLETIONS
    from .responses import RESPONSES

    return {
        "/v1/chat/completions": CHAT,
        "/v1/completions": COMPLETIONS,
        "/v1/responses": RESPONSES,
        "/v1/messages": MESSAGES,
        "/api/chat": ollama.CHAT,
        "/api/generate": ollama.GENERATE,
    }
