"""The parser of the command line, with suggestions for what does not exist.

Only the options of the command to run are imported (``options``).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from ... import __version__
from ..installed import install_command
from ..suggestions import close_names, did_you_mean
from .common import UsageError
from .options.common import CODES

_DESCRIPTION: Final = """\
A chat template turns messages into text. untemplate turns the text back into messages:
the raw output of a language model into reasoning, content and tool calls.
"""

_EPILOG: Final = """\
examples:
  untemplate formats                                  list the formats
  untemplate formats hermes                           one format, and a call as its models write it
  untemplate formats Qwen/Qwen3-8B                    the formats for a model
  untemplate explain chat_template.jinja              infer a format from a template, with a certificate
  untemplate parse --format hermes output.txt         the message, as JSON
  curl ... | untemplate parse --format qwen3_coder --stream
  untemplate parse --model ./my-model --explain output.txt
  untemplate batch outputs.jsonl -o messages.jsonl --format hermes
  untemplate guess outputs.jsonl                      rank the formats for outputs
  untemplate inspect                                  look at an output in the browser

NO_COLOR switches colours off, FORCE_COLOR switches them on in a pipe.
exit codes: 0 success, even for malformed model output; 1 the result could not be written; 2 a wrong name, file or
option; 3 no row was parsed, a row failed (--strict), or a check; 130 interrupted.
"""


COMMANDS: Final = {
    "parse": "parse a raw model output into a message",
    "batch": "parse the raw outputs in files, on all cores",
    "stats": "count statuses, diagnostics and tools in the results of batch",
    "drift": "compare sampled token ids with those of their text",
    "conform": "run any parser over the vectors: raw outputs with their messages",
    "guess": "rank the formats for an output whose format is not known",
    "inspect": "look at outputs and templates in the browser",
    "explain": "show what a model or template writes, with the evidence",
    "export": "write a format for other projects",
    "formats": "list the catalogue of formats, or show one",
    "check": "test a live server: does it parse what its model writes?",
}
_RUNS: Final = {"conform": ("conform", "run_conform"), "stats": ("batch", "run_stats")}
"""Module and function that run a command, where they are not ``run`` in a module of its name."""
GATEWAY: Final = {
    "serve": "serve OpenAI's, Anthropic's and Ollama's APIs",
    "pull": "download a model from the hub",
    "list": "the models on disk",
    "show": "show a model: details, abilities, memory",
    "rm": "delete a model from the cache",
}
_MISSING: Final = "This command is part of the gateway, a distribution of its own."


def _lazily(module: str, function: str) -> Callable[[argparse.Namespace], int | None]:
    """Return the function that runs a command. It imports the command's module when it is called."""

    def run(arguments: argparse.Namespace) -> int | None:
        code: int | None = getattr(import_module(f".{module}", __package__), function)(arguments)
        return code

    return run


class Command(Protocol):
    """Adds a command and returns its argument parser."""

    def __call__(
        self, name: str, text: str, description: str, epilog: str = "", codes: str = ""
    ) -> argparse.ArgumentParser: ...


class _Parser(argparse.ArgumentParser):
    """Suggests commands and options that are spelled like the one that does not exist.

    A command may set a function ``otherwise``. It returns options that do not exist, but whose names users try, with
    what to write instead.
    """

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            name = unknown[0].partition("=")[0]
            options = re.findall(r"--[a-z][a-z-]*", found.usage()) if name.startswith("--") else ()
            valid = {**getattr(found, "otherwise", dict)(), **{option: option for option in options}}
            near = [valid[option] for option in close_names(name, valid)]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(near)}")
        return found


def parser_for(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the argument parser for a command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = _Parser(prog="untemplate", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"untemplate {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, text: str, description: str, epilog: str = "", codes: str = "") -> argparse.ArgumentParser:
        codes = codes or CODES
        ending = f"{epilog}\n{codes}" if epilog else codes
        return commands.add_parser(
            name, help=text, description=description, epilog=ending, formatter_class=raw, allow_abbrev=False
        )

    for name, text in COMMANDS.items():
        if argv[:1] == [name]:
            options = import_module(f".options.{name}", __package__)
            chosen = command(name, text, options.DESCRIPTION, options.EPILOG, options.CODES)
            chosen.set_defaults(run=_lazily(*_RUNS.get(name, (name, "run"))), command=name)
            options.add(chosen)
        else:
            command(name, text, "")
    _add_others(command, argv)
    for one in commands.choices.values():
        one.set_defaults(usage=one.format_usage)
    if argv and argv[0] not in commands.choices and not argv[0].startswith("-"):
        hint = did_you_mean(close_names(argv[0], commands.choices)) or ";"
        top.error(f"unknown command {argv[0]!r}{hint} commands: {', '.join(commands.choices)}")
    return top


def _add_others(command: Command, argv: Sequence[str]) -> None:
    """Add the commands of other installed distributions (entry points of the group ``untemplate.commands``): functions
    that take ``command`` and the command line. If the gateway is not installed, its commands explain how to install it.
    """
    if argv and (argv[0] in COMMANDS or argv[0] == "--version"):
        return  # reading the metadata of all installed packages would take longer than most commands
    found = entry_points(group="untemplate.commands")
    for point in found:
        point.load()(command, argv)
    if "gateway" not in found.names:
        for name, what in GATEWAY.items():
            missing = command(name, f"{what} (in untemplate-gateway, which is not installed)", _MISSING)
            missing.prefix_chars = "\0"  # its options are not known, and are words like others
            missing.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
            missing.set_defaults(run=_missing, command=name)


def _missing(arguments: argparse.Namespace) -> int:
    raise UsageError(f"{arguments.command} needs untemplate-gateway: {install_command('untemplate-gateway')}")
