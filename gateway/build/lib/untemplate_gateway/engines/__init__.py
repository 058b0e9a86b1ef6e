"""Engines: they generate tokens from a prompt.

All implement one small interface (`base`), each in a module of its own. A module imports its engine's package only
when the engine starts.
"""

from .base import Engine, EngineChunk, EngineError, Health, Job, Takes

__all__ = ["Engine", "EngineChunk", "EngineError", "Health", "Job", "Takes"]
