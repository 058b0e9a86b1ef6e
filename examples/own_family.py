"""A model that the catalogue does not know: describe what it writes, and get parser, stream and renderer.

The model thinks between ``[[think]]`` and ``[[/think]]`` and calls tools as ``[[call NAME]]{…}[[/call]]``.
"""

from __future__ import annotations

from untemplate import Format, OutputParser
from untemplate.format import Marker, NamedBody, Reasoning, Tools

ACME = Format(
    name="acme",
    reasoning=Reasoning(open=Marker("[[think]]\n"), close=Marker("\n[[/think]]\n\n")),
    tools=(
        Tools(
            call_open=Marker("\n[[call "),
            body=NamedBody(name_close=Marker("]]")),
            call_close=Marker("[[/call]]"),
        ),
    ),
)

OUTPUT = '[[think]]\nTwo tickets are open.\n[[/think]]\n\nOn it.\n[[call close_ticket]]{"id": 7}[[/call]]'

parser = OutputParser.from_format(ACME)

# The whole output.
message = parser.parse(OUTPUT)
print(message.reasoning, "|", message.content, "|", message.tool_calls[0].function.name)

# The same output in pieces of five characters: what a client would receive.
stream = parser.stream(seed=1)
arguments = ""
for start in range(0, len(OUTPUT), 5):
    for delta in stream.feed(OUTPUT[start : start + 5]):
        for call in delta.tool_calls or ():
            arguments += call.function.arguments or ""
stream.finish("stop")
print(arguments, stream.finish_reason)

# The message as the model writes it, and the Format as JSON for a file of your own.
print(parser.render(message) == OUTPUT)
print(Format.from_json(ACME.to_json()) == ACME)

# Prints:
# Two tickets are open. | On it. | close_ticket
# {"id": 7} tool_calls
# True
# True
