"""The inspector: pages that show how an output is parsed, for people whose tool calls do not work.

`Inspector` answers the requests of the pages; it knows no server. The gateway serves it at ``/inspect``, and
``untemplate inspect`` serves it alone (`server`). `one_file` writes the view of one output as a file that needs nothing
else.
"""

from .cases import MAX_TEXT, Case
from .inspector import Inspector, InspectorError, Models
from .page import FILES, HEADERS, one_file, read_file
from .view import alone

__all__ = [
    "FILES",
    "HEADERS",
    "MAX_TEXT",
    "Case",
    "Inspector",
    "InspectorError",
    "Models",
    "alone",
    "one_file",
    "read_file",
]
