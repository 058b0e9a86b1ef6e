"""Imports: the core works without the layers above it, and private names stay in their package.

The order of the layers is a contract in ``pyproject.toml`` (``make imports``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import untemplate

UNFINISHED = {"validation.py"}
"""Modules that still read private names of another package. No module may be added here."""

SOURCES = Path(untemplate.__file__).parent

PARSE = """
import sys
from untemplate import OutputParser
parser = OutputParser(None, reasoning_parser_name="qwen3", tool_parser_name="hermes")
stream = parser.stream(collect=True)
stream.feed('<think>a</think><tool_call>{"name": "f", "arguments": {}}</tool_call>')
stream.finish()
assert stream.result().tool_calls and parser.has_tools and parser.adjust_request({}) and repr(parser)
print(sorted(name for name in sys.modules if name.startswith("untemplate.vllm_api")))
assert parser.tool_parser is not None
print("untemplate.vllm_api" in sys.modules)
"""


def test_parsing_loads_nothing_of_the_compatibility_layer():
    done = subprocess.run([sys.executable, "-c", PARSE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\nTrue\n", "")


def test_names_that_are_registered_are_found_once_the_managers_are_loaded():
    code = """
from untemplate import OutputParser
try:
    OutputParser(None, tool_parser_name="mine")
except ValueError as error:
    print(type(error).__name__)
from untemplate.vllm_api import ToolParserManager
ToolParserManager.register_module("mine", module=ToolParserManager.get_tool_parser("hermes"))
parser = OutputParser(None, tool_parser_name="mine")
print(parser)
print(parser.parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>').tool_calls[0].function.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "UnknownFormatError",
        "<OutputParser 'passthrough', named, parsed by RegisteredBackend, without tokenizer>",
        "f",
    ]


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of this package's own modules; modules are relative to it."""
    package = path.relative_to(SOURCES).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names if name.name.startswith("untemplate.")]
            yield from ((name.removeprefix("untemplate."), "") for name in names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = ".".join([*package[: len(package) - node.level + 1], *filter(None, [module])])
            elif (module + ".").startswith("untemplate."):
                module = module.removeprefix("untemplate").removeprefix(".")
            else:
                continue
            yield from ((module, name.name) for name in node.names)


def test_private_names_stay_in_their_package():
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        if str(path.relative_to(SOURCES)) in UNFINISHED:
            continue
        own = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        for module, name in imports(path):
            parts = [*filter(None, module.split(".")), name]
            private = any(part.startswith("_") and not part.startswith("__") for part in parts)
            if private and parts[0] != own:
                found.append(f"{path.relative_to(SOURCES)}: {'.'.join(parts)}")
    assert found == []
