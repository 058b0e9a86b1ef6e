"""Engines: what turns a prompt into tokens.

The rule: one small interface (`base`), one module per engine; what an engine needs is imported when it is started.
"""

from .base import Engine, EngineChunk, EngineError, Health, Job, Takes

__all__ = ["Engine", "EngineChunk", "EngineError", "Health", "Job", "Takes"]
