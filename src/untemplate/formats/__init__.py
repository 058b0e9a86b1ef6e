"""The catalogue: one module per model family, data only; formats by the names that people already use.

>>> from untemplate.formats import named
>>> named("hermes", reasoning="deepseek_r1").name
'deepseek_r1+hermes'
"""

from .registry import (
    Entry,
    IncompatibleFormatsError,
    Kind,
    UnknownFormatError,
    entries,
    lookup,
    merge,
    named,
    names,
)

__all__ = [
    "Entry",
    "IncompatibleFormatsError",
    "Kind",
    "UnknownFormatError",
    "entries",
    "lookup",
    "merge",
    "named",
    "names",
]
