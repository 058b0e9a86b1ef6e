"""The catalogue of formats: one module of data per model family, found by the names that engines already use.

>>> from untemplate.formats import named
>>> named("hermes", reasoning="deepseek_r1").name
'hermes+deepseek_r1'
"""

from ..errors import IncompatibleFormatsError, UnknownFormatError
from ._family import Entry, Evidence, Kind
from ._merging import merge
from ._registered import register
from ._registry import entries, half, lookup, named, names

__all__ = [
    "Entry",
    "Evidence",
    "IncompatibleFormatsError",
    "Kind",
    "UnknownFormatError",
    "entries",
    "half",
    "lookup",
    "merge",
    "named",
    "names",
    "register",
]
