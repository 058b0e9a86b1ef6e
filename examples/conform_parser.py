"""A program for `untemplate conform`: it reads requests and writes answers, each a line of JSON.

    untemplate conform -- python examples/conform_parser.py

Put your own parser in the place of untemplate. The answer can also be the message of the whole output.
"""

import json
import sys

from untemplate import OutputParser
from untemplate.format import Format


def main() -> None:
    formats = json.loads(sys.stdin.readline())["formats"]
    parsers = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "tokens" in request:
            print(json.dumps({"id": request["id"], "unsupported": "it reads text only"}), flush=True)
            continue
        name = request["format"]
        if name not in parsers:
            parsers[name] = OutputParser.from_format(Format.from_json(json.dumps(formats[name])))
        stream = parsers[name].stream(tools=request["tools"], prompt=request["prompt"])
        deltas = [delta for piece in request["pieces"] for delta in stream.feed(piece)]
        deltas += stream.finish(request["finish_reason"])
        print(json.dumps({"id": request["id"], "deltas": [written(delta) for delta in deltas]}), flush=True)


def written(delta):
    calls = [
        {"index": call.index, "name": call.function.name, "arguments": call.function.arguments}
        for call in delta.tool_calls or ()
    ]
    return {"reasoning": delta.reasoning, "content": delta.content, "tool_calls": calls}


if __name__ == "__main__":
    main()
