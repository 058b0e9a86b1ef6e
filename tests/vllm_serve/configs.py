"""Run the declarative parser files of a version of vLLM on untemplate's ``ParserEngine``: `make test-vllm`.

usage: PYTHONPATH=SOURCE python -m tests.vllm_serve.configs VERSION [--record]

The files are those of the vLLM that is imported: put its unpacked source distribution first on PYTHONPATH. Each config
is made, and its parser reads two calls, as the Format of the same family writes them, whole and streamed by token.
Prints one line for each file, and exits with 1 if one cannot be made, reads another message, or was recorded and is
gone. ``--record`` writes ``recorded/configs.json``, of which docs/vllm-tests.md has a table.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).with_name("plugins")))

import untemplate_engine  # type: ignore[import-not-found]
import vllm.parser
from untemplate_outcomes import tokenizer  # type: ignore[import-not-found]

from tests.vllm_serve.agreement import CALLS, TOOLS, streamed
from tests.vllm_serve.overhead import pieces
from untemplate import OutputParser
from untemplate.formats import names
from untemplate.vllm_api import ParserEngine, make_parser_request

assert untemplate_engine

FORMATS: Final = {
    # file: Format, where it has another name
    "nemotron_v3": "qwen3_coder",
    "qwen3": "qwen3_coder",
    "glm47_moe": "glm47",
    "mistral": "",  # vLLM's file takes the id of a call for a part of its name
}
READ: Final = "two calls"
MADE: Final = "made; no Format writes what it reads"
RECORDED: Final = Path(__file__).with_name("recorded") / "configs.json"
EXPECTED: Final = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in CALLS]


def parsers() -> list[tuple[str, type[ParserEngine]]]:
    """Return (file, class) of each parser that runs a config."""
    found = []
    for path in sorted(Path(next(iter(vllm.parser.__path__))).glob("*.py")):
        if "ParserEngine" not in path.read_text("utf-8") or path.stem == "parser_manager":
            continue
        module = importlib.import_module(f"vllm.parser.{path.stem}")
        found += [
            (path.stem, cls)
            for _, cls in inspect.getmembers(module, inspect.isclass)
            if issubclass(cls, ParserEngine) and cls.__module__ == module.__name__
        ]
    return found


def check(file: str, cls: type[ParserEngine]) -> str:
    """Return the problem; empty if there is none."""
    name = FORMATS.get(file, file)
    parser: Any = cls(tokenizer(), TOOLS)
    if name not in names("tool"):
        return "-"
    text = OutputParser.named(name).render({"role": "assistant", "tool_calls": CALLS})
    request = make_parser_request("m", [], TOOLS)
    prompt = tokenizer().encode("Hi")
    parts = pieces(text, sorted(OutputParser.named(name).format.special_tokens))
    ids = [token for _, tokens in parts for token in tokens]
    parser.set_prompt_token_ids(prompt)
    _, content, calls = parser.parse(text, request, True, ids)
    whole = [(call.name, json.loads(call.arguments)) for call in calls or ()]
    if whole != EXPECTED:
        return f"whole: {content!r} {whole}"
    parser = cls(tokenizer(), TOOLS)
    deltas = [parser.parse_delta(*part, request, prompt, finished=False) for part in parts]
    deltas.append(parser.parse_delta("", [], request, prompt, finished=True))
    _, content, sent = streamed([delta for delta in deltas if delta is not None])
    return "" if [(one, json.loads(arguments)) for one, arguments in sent] == EXPECTED else f"streamed: {sent}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("version", help="the version of vLLM that is imported")
    options.add_argument("--record", action="store_true", help="record what was read")
    given = options.parse_args()
    found = {}
    for file, cls in parsers():
        try:
            problem = check(file, cls)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        found[file] = {"": READ, "-": MADE}.get(problem, f"WRONG: {problem}")
        print(f"{given.version} {file}.py, {cls.__name__}: {found[file]}", flush=True)
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    missing = sorted(set(recorded.get(given.version, ())) - set(found))
    if given.record:
        recorded = dict(sorted((recorded | {given.version: found}).items()))
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
    elif missing:
        print(f"{given.version}: not there any more: {', '.join(missing)}")
    return 1 if missing or any(told not in (READ, MADE) for told in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
