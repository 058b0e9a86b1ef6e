"""The protocol of `untemplate conform`: requests on stdin, answers on stdout."""

from __future__ import annotations

import json
import sys

from calls import Unsupported
from parser import parse


def main() -> None:
    formats = json.loads(sys.stdin.readline())["formats"]
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object]
        if "tokens" in request:
            answer = {"unsupported": "it reads text only"}
        else:
            try:
                form = formats[request["format"]]
                answer = {"message": parse(form, "".join(request["pieces"]), request["tools"], request["prompt"])}
            except Unsupported as reason:
                answer = {"unsupported": str(reason)}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
