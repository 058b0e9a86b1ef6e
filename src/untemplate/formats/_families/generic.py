"""Generic: calls of models whose chat template knows no tools. The gateway shows them the tools in the system message.

The form is that of Hermes, which many models have seen: a JSON object in ``<tool_call>`` tags. The tags are ordinary
text for such models. The text that asks for it is ``gateway/templates/generic_tools.jinja``. llama.cpp calls its form
for such models "generic" as well ("common/chat.cpp", 2026-11-22).
"""

from __future__ import annotations

from ...format import Format
from .._family import Entry, Evidence
from .hermes import TOOLS

GENERIC = Format(name="generic", tools=(TOOLS,))

ENTRIES = (
    Entry(
        name="generic",
        kind="tool",
        format=GENERIC,
        models=("any",),
        evidence=(
            Evidence("engine", "ggml-org/llama.cpp common/chat.cpp", "2026-11-22", "its generic form is another"),
        ),
    ),
)
