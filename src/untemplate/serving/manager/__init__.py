"""Models: found, fetched, looked at, loaded and let go.

The rule: a model that answers requests is an immutable `Model`; to change anything about it is to load another one
and to let the old one finish what it has begun.
"""

from .model import Model

__all__ = ["Model"]
