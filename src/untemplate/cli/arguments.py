"""Declare the arguments of all commands, with their help texts.

Nothing is imported for it. A command whose options come from elsewhere (``check``) gets them only when it is the
command to run.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from .. import __version__
from ..errors import close_names, did_you_mean
from ..installed import install_command
from . import which_format
from .common import UsageError, positive


def _lazily(module: str, function: str = "run") -> Callable[[argparse.Namespace], int | None]:
    """Return the function that runs a command. It imports the command's module when it is called."""

    def run(arguments: argparse.Namespace) -> int | None:
        code: int | None = getattr(import_module(f".{module}", __package__), function)(arguments)
        return code

    return run


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
_CODES: Final = """\
exit codes: 0 success, even for malformed model output; 1 the result could not be written; 2 a wrong name, file or
option; 130 interrupted.
"""
_STRICT_CODES: Final = """\
exit codes: 0 success, even for malformed model output; 1 the result could not be written; 2 a wrong name, file, column
or option; 3 no row was parsed, or with --strict a row failed or differs; 130 interrupted.
"""

_CONFORM_CODES: Final = """\
exit codes: 0 no new failure; 1 the result could not be written; 2 a wrong option, or a program that does not keep to
the protocol; 3 vectors failed that are not known to; 130 interrupted.
"""
_CONFORM_DESCRIPTION: Final = """\
Run a parser over the vectors of untemplate-vectors: raw outputs of models with the messages that they mean, whole and
in random pieces. The parser is a program that reads requests and writes answers as lines of JSON (docs/conform.md).
"""
_CONFORM_EPILOG: Final = """\
examples:
  untemplate conform                                  untemplate's own parser
  untemplate conform -- node parser.js                a program
  untemplate conform --level clean --format hermes --junit results.xml -- ./my-parser
"""

_PARSE_DESCRIPTION: Final = """\
Parse one raw model output and print the assistant message as JSON. The output is read byte by byte, special tokens
included; bytes that are not UTF-8 are kept and printed as \\udcXX. The ids of calls are the same in every run. The
format is named (--format, --enforce-parser), inferred from a chat template (--template), or selected for a model by
measuring formats against its own template, as `untemplate explain` shows (--model).
"""

_PARSE_EPILOG: Final = """\
examples:
  untemplate parse --format hermes --reasoning qwen3 output.txt
  untemplate parse --format qwen3_coder --tools tools.json --prompt prompt.txt output.txt
  untemplate parse --template chat_template.jinja --split 1 --stream output.txt
  untemplate parse --model ./my-model --policy unknown_tools=drop --policy repair=syntax output.txt
  untemplate parse --format kimi_k2 --json output.txt | jq .diagnostics
  untemplate parse --format hermes --explain --html output.txt > output.html
"""

_BATCH_DESCRIPTION: Final = """\
Parse many raw outputs, one a row, on all cores. Without a format it is guessed from the first 1,000 rows. INPUT and
OUTPUT are JSONL (plain, .gz, .zst) or Parquet files, INPUT also CSV files, stdin (-) and names that fsspec opens; .zst
and Parquet need pyarrow. Every row becomes a record with its
row number, in order: the message, finish reason, statuses of calls and diagnostics. A row that cannot be parsed becomes
a record with an error. Results are written to OUTPUT.partial first, so that an interrupted run can be resumed.
"""

_BATCH_EPILOG: Final = """\
examples:
  untemplate batch outputs.jsonl.gz -o messages.jsonl.gz --format hermes --reasoning qwen3
  untemplate batch rows.parquet -o messages.parquet --model ./my-model --output-column completion --keep id
  untemplate batch rows.jsonl -o messages.jsonl --format-column family --strict --report report.html
  untemplate batch rollouts.jsonl -o parsed.jsonl --format hermes --tokenizer ./my-model --ids-column ids --spans
"""

_DRIFT_DESCRIPTION: Final = """\
Measure how often encoding the text of sampled token ids again gives other ids. For each row with a difference, print
one JSON object: the row, the index of the first different token, and the ids around it. INPUT is as for batch.
"""

_EXPLAIN_DESCRIPTION: Final = """\
Show what a model writes, and the evidence: what its chat template shows, which messages parsed back after rendering,
which format was selected and which came second, an example turn with its regions marked, and the policies in force.
MODEL is a name of `untemplate formats`, a folder, a GGUF file or a hub id; TEMPLATE is a
template, a tokenizer_config.json or a chat_template.json (-: stdin).
"""

_EXPLAIN_EPILOG: Final = """\
examples:
  untemplate explain chat_template.jinja
  untemplate explain ./my-model -v                    each comparison of the analysis
  untemplate explain Qwen/Qwen3-8B --json | jq .selection.chosen
  untemplate explain hermes --parser                  the compiled program
  untemplate explain hermes --grammar lark --tools tools.json --tool-choice required --strict
  untemplate explain hermes --grammar --json | jq '.requests["llama.cpp"]'
"""

_EXPORT_DESCRIPTION: Final = """\
Write the format of a model in a form that other projects read. A response template goes into tokenizer_config.json, as
"response_template": transformers (5.13 and later) and TRL then parse the model's outputs without untemplate. Parts of
the format that a response template cannot hold are listed on stderr; if calls would be wrong, that is an error.
"""

_EXPORT_EPILOG: Final = """\
examples:
  untemplate export --model ./my-model --response-template
  untemplate export --format hermes --reasoning qwen3 --response-template -o response_template.json
"""

_FORMATS_DESCRIPTION: Final = """\
List the catalogue of formats, or show one of them: its evidence, its markers, and a turn as its models write it. With
--json, NAME prints the Format itself, which `untemplate parse --format FILE.json` reads; --schema prints the JSON
Schema of such a file.
"""


_INSPECT_DESCRIPTION: Final = """\
Serve the inspector, a page that shows what each part of a raw output became and why, step by step; compares the stream
of a server with the right message; and shows what a chat template writes. It listens on 127.0.0.1 only and loads
nothing from elsewhere. The gateway serves the same page at /inspect.
"""

_GUESS_DESCRIPTION: Final = """\
Parse an output with every format of the catalogue and rank them: the best one leaves no marker as text, reads the most
calls and has the fewest problems (invalid calls, diagnostics, reasoning without a marker). Formats that read the same
message are ordered by the number of engines that know them.

FILE may have an output in each row (.jsonl, .jsonl.gz, .jsonl.zst, .parquet, .csv). The figures are then sums over all
rows; formats that read every row alike share a line; the row in which another format first differs is shown; and the
last line is the --format to use.

columns:
  FORMAT        name for --format, with the reasoning that fits
  CALLS         tool calls that were read
  PROBLEMS      calls that are not ok, and diagnostics
  MARKERS LEFT  markers that were left as text in content or reasoning
  REASONING     yes if a part was read as reasoning; of rows, their number
  ENGINES       engines that have a parser for the format
"""


_CHECK_DESCRIPTION: Final = """\
Test a live server with OpenAI's API. Its own model is made to write known texts, by the means that the server has
(grammars, prefixes); the messages that come back, whole and streamed, are compared with the expected ones. Other checks
need no such means: streams, tool choice, cut outputs, stop strings, usage, errors, and the APIs Responses and Messages.
Verdicts: pass, soft (white space, or a reading on which servers differ), fail, and cannot be tested here.
"""

_CHECK_EPILOG: Final = """\
examples:
  untemplate check --base-url http://localhost:8000/v1
  untemplate check --base-url http://localhost:8000/v1 --format hermes+qwen3 --html report.html --junit junit.xml
  untemplate check --base-url https://host/v1 --model NAME --api-key-env HOST_KEY --rate 30 --token-budget 200000
  untemplate check --base-url http://localhost:8000/v1 --only given/ --resume results.jsonl
  untemplate check --base-url https://host/v1 --model kimi-k2 --vendor kimi --samples samples.jsonl --only vendor/

"""
_CHECK_CODES: Final = """\
exit codes: 0 nothing failed; 1 the result could not be written; 2 a wrong option, or a server that cannot be checked;
3 a check failed; 130 interrupted (--resume FILE goes on from there).
"""


_OWN: Final = frozenset(
    (
        *("parse", "batch", "stats", "drift", "guess", "inspect", "explain", "export", "formats", "check", "conform"),
        "--version",
    )
)
_GATEWAY: Final = {
    "serve": "serve OpenAI's, Anthropic's and Ollama's APIs",
    "pull": "download a model from the hub",
    "list": "the models on disk",
    "show": "show a model: details, abilities, memory",
    "rm": "delete a model from the cache",
}
_MISSING: Final = "This command is part of the gateway, a distribution of its own."


class Command(Protocol):
    """Adds a command and returns its argument parser."""

    def __call__(
        self, name: str, text: str, description: str, epilog: str = "", codes: str = ""
    ) -> argparse.ArgumentParser: ...


class _Parser(argparse.ArgumentParser):
    """Suggests commands and options that are spelled like the one that does not exist."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options = re.findall(r"--[a-z][a-z-]*", found.usage()) if unknown[0].startswith("--") else ()
            hint = did_you_mean(close_names(unknown[0], dict.fromkeys(options)))
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found


def parser_for(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the argument parser for a command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = _Parser(prog="untemplate", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=raw, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"untemplate {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, text: str, description: str, epilog: str = "", codes: str = "") -> argparse.ArgumentParser:
        codes = codes or _CODES
        ending = f"{epilog}\n{codes}" if epilog else codes
        return commands.add_parser(
            name, help=text, description=description, epilog=ending, formatter_class=raw, allow_abbrev=False
        )

    _add_parse(command("parse", "parse a raw model output into a message", _PARSE_DESCRIPTION, _PARSE_EPILOG))
    _add_batch(
        command(
            "batch", "parse the raw outputs in files, on all cores", _BATCH_DESCRIPTION, _BATCH_EPILOG, _STRICT_CODES
        )
    )
    what = "count statuses, diagnostics and tools in the results of batch"
    _add_stats(command("stats", what, "Count what the results of `untemplate batch` hold, with its summary."))
    what = "compare sampled token ids with those of their text"
    _add_drift(command("drift", what, _DRIFT_DESCRIPTION, codes=_STRICT_CODES))
    what = "run any parser over the vectors: raw outputs with their messages"
    _add_conform(command("conform", what, _CONFORM_DESCRIPTION, _CONFORM_EPILOG, _CONFORM_CODES))
    _add_guess(command("guess", "rank the formats for an output whose format is not known", _GUESS_DESCRIPTION))
    what = "look at outputs and templates in the browser"
    _add_inspect(command("inspect", what, _INSPECT_DESCRIPTION))
    what = "show what a model or template writes, with the evidence"
    _add_explain(command("explain", what, _EXPLAIN_DESCRIPTION, _EXPLAIN_EPILOG))
    _add_export(command("export", "write a format for other projects", _EXPORT_DESCRIPTION, _EXPORT_EPILOG))
    _add_formats(command("formats", "list the catalogue of formats, or show one", _FORMATS_DESCRIPTION))
    what = "test a live server: does it parse what its model writes?"
    check = command("check", what, _CHECK_DESCRIPTION, _CHECK_EPILOG, _CHECK_CODES)
    if argv[:1] == ["check"]:
        from .check import add_arguments as add_check

        add_check(check)
    _add_others(command, argv)
    for one in commands.choices.values():
        one.set_defaults(usage=one.format_help)
    if argv and argv[0] not in commands.choices and not argv[0].startswith("-"):
        hint = did_you_mean(close_names(argv[0], commands.choices)) or ";"
        top.error(f"unknown command {argv[0]!r}{hint} commands: {', '.join(commands.choices)}")
    return top


def _add_others(command: Command, argv: Sequence[str]) -> None:
    """Add the commands of other installed distributions (entry points of the group ``untemplate.commands``): functions
    that take ``command`` and the command line. If the gateway is not installed, its commands explain how to install it.
    """
    if argv and argv[0] in _OWN:
        return  # reading the metadata of all installed packages would take longer than most commands
    found = entry_points(group="untemplate.commands")
    for point in found:
        point.load()(command, argv)
    if "gateway" not in found.names:
        for name, what in _GATEWAY.items():
            missing = command(name, f"{what} (in untemplate-gateway, which is not installed)", _MISSING)
            missing.prefix_chars = "\0"  # its options are not known, and are words like others
            missing.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
            missing.set_defaults(run=_missing, command=name)


def _missing(arguments: argparse.Namespace) -> int:
    raise UsageError(f"{arguments.command} needs untemplate-gateway: {install_command('untemplate-gateway')}")


def _add_conform(conform: argparse.ArgumentParser) -> None:
    conform.set_defaults(run=_lazily("conform", "run_conform"), command="conform")
    conform.add_argument(
        "command_line", nargs="*", metavar="COMMAND", help="program to run, after -- (default: untemplate's own parser)"
    )
    conform.add_argument(
        "--vectors", metavar="FOLDER", help="folder with vectors.jsonl and formats.json (default: the package)"
    )
    conform.add_argument("--format", action="append", default=[], metavar="NAME", help="only this format (repeatable)")
    conform.add_argument(
        "--level",
        action="append",
        default=[],
        choices=("clean", "cut", "slipped", "quoted", "hostile", "ids"),
        help="only this level (repeatable)",
    )
    conform.add_argument(
        "--rule", action="append", default=[], metavar="RULE", help="only this rule, such as M3 (repeatable)"
    )
    conform.add_argument(
        "--by", choices=("level", "rule", "format"), default="level", help="rows of the table (default: level)"
    )
    conform.add_argument("--splits", type=int, default=10, metavar="N", help="random cuts of each output (default: 10)")
    conform.add_argument(
        "--show", type=int, default=5, metavar="N", help="failures to print, the shortest first (default: 5)"
    )
    conform.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    conform.add_argument("--html", metavar="FILE", help="write the report as a web page")
    conform.add_argument("--badge", metavar="FILE", help="write a badge, as JSON for shields.io")
    conform.add_argument("--json", action="store_true", help="print one line of JSON")


def _add_guess(guess: argparse.ArgumentParser) -> None:
    guess.set_defaults(run=_lazily("guess"))
    guess.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="raw output, or a file of rows (default: -, stdin)"
    )
    _add_tools(guess)
    for name in ("output", "tools", "prompt"):
        guess.add_argument(f"--{name}-column", metavar="NAME", help=f"column of rows: {_COLUMNS[name]}")
    guess.add_argument(
        "--rows", type=positive, default=1_000, metavar="N", help="number of rows to read (default: 1000)"
    )
    guess.add_argument("--all", action="store_true", help="print all formats instead of the best ten")
    guess.add_argument("--json", action="store_true", help="print one line of JSON, with the message of one output")


def _add_inspect(inspect: argparse.ArgumentParser) -> None:
    inspect.set_defaults(run=_lazily("inspect"))
    inspect.add_argument(
        "--port", type=int, default=8009, metavar="N", help="port to listen on; 0: any free one (default: 8009)"
    )


def _add_parse(parse: argparse.ArgumentParser) -> None:
    parse.set_defaults(run=_lazily("parse"), command="parse")
    parse.add_argument("file", nargs="?", default="-", metavar="FILE", help="raw output (default: -, stdin)")
    which_format.add_arguments(parse)
    what = parse.add_argument_group("Prompt and request")
    _add_tools(what)
    what.add_argument(
        "--prompt", metavar="FILE", help="rendered prompt; its end decides whether the output begins in reasoning"
    )
    what.add_argument(
        "--finish-reason",
        default="stop",
        metavar="R",
        help="finish reason of the engine: stop, length, ... (default: stop)",
    )
    how = parse.add_argument_group("Policies and output")
    _add_policy(how)
    shown = how.add_mutually_exclusive_group()
    shown.add_argument("--stream", action="store_true", help="print deltas as they come, one JSON object per line")
    shown.add_argument(
        "--explain", action="store_true", help="print the raw text with its regions marked, and the diagnostics"
    )
    how.add_argument(
        "--html", action="store_true", help="with --explain: print the view of the inspector as one file, for a browser"
    )
    how.add_argument(
        "--split",
        type=positive,
        metavar="N",
        help="feed the output in pieces of N characters (the message is the same)",
    )
    how.add_argument(
        "--json",
        action="store_true",
        help="print one line: message, finish_reason, statuses and repairs of calls, diagnostics; with --explain spans",
    )


def _add_batch(batch: argparse.ArgumentParser) -> None:
    batch.set_defaults(run=_lazily("batch"), command="batch")
    batch.add_argument(
        "input",
        nargs="+",
        metavar="INPUT",
        help="rows: .jsonl, .jsonl.gz, .jsonl.zst, .parquet, .csv; -: JSONL from stdin; s3://…, hf://… (fsspec)",
    )
    batch.add_argument("-o", "--output", required=True, metavar="OUTPUT", help="results; the name decides their kind")
    which_format.add_arguments(batch)
    batch.add_argument("--format-column", metavar="NAME", help="column with the name of each row's format")
    columns = batch.add_argument_group("Columns (default: those of these names, where a row has them)")
    for name, what in _COLUMNS.items():
        columns.add_argument(f"--{name.replace('_', '-')}-column", metavar="NAME", help=what)
    columns.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="column to copy to the results (repeatable; *: all)"
    )
    how = batch.add_argument_group("Policies and output")
    _add_policy(how)
    how.add_argument("--tokenizer", metavar="ID|PATH", help="tokenizer.json, folder or hub id, for token ids")
    how.add_argument("--spans", action="store_true", help="add the regions of each output, in characters and tokens")
    how.add_argument("--processes", type=positive, metavar="N", help="number of processes (default: one for each core)")
    how.add_argument("--resume", action="store_true", help="continue an interrupted run")
    how.add_argument("--strict", action="store_true", help="exit with 3 if a row has an error or a call is not ok")
    how.add_argument("--quiet", action="store_true", help="print nothing but errors, and the summary with --json")
    _add_summary(how)


_COLUMNS: Final = {
    "output": "raw output",
    "ids": "token ids of the output, instead of its text",
    "tools": "tools of the request: a list, or JSON text",
    "prompt": "prompt, as text or token ids",
    "finish_reason": "finish reason of the engine",
}


def _add_summary(group: argparse._ActionsContainer) -> None:
    group.add_argument("--report", metavar="FILE.html", help="write the summary as a page with charts")
    group.add_argument("--json", action="store_true", help="print the summary as JSON")


def _add_stats(stats: argparse.ArgumentParser) -> None:
    stats.set_defaults(run=_lazily("batch", "run_stats"))
    stats.add_argument("input", nargs="+", metavar="RESULTS", help="results of `untemplate batch`")
    _add_summary(stats)


def _add_drift(drift: argparse.ArgumentParser) -> None:
    drift.set_defaults(run=_lazily("drift"))
    drift.add_argument("input", nargs="+", metavar="INPUT", help="rows: .jsonl, .jsonl.gz, .jsonl.zst or .parquet")
    drift.add_argument("--tokenizer", required=True, metavar="ID|PATH", help="tokenizer.json, folder or hub id")
    drift.add_argument("--ids-column", default="ids", metavar="NAME", help="token ids of the output (default: ids)")
    drift.add_argument("--strict", action="store_true", help="exit with 3 if a row differs or has an error")
    drift.add_argument("--json", action="store_true", help="print the summary as JSON")


def _add_explain(explain: argparse.ArgumentParser) -> None:
    explain.set_defaults(run=_lazily("explain"))
    explain.add_argument("source", metavar="MODEL|TEMPLATE", help="model or template to explain")
    explain.add_argument("-v", "--verbose", action="store_true", help="print each comparison of the analysis as well")
    explain.add_argument("--enforce-parser", metavar="NAME|FILE.json", help="format to measure instead")
    _add_policy(explain)
    _add_tools(explain, "tools for --grammar: a JSON list, or a request that contains one (default: samples)")
    explain.add_argument(
        "--parser", action="store_true", help="print the compiled program: states, rules, call syntaxes"
    )
    explain.add_argument(
        "--grammar",
        nargs="?",
        const="gbnf",
        type=_dialect,
        metavar="DIALECT",
        help="print the grammar for constrained decoding: gbnf (default), lark, structural_tag",
    )
    explain.add_argument(
        "--json", action="store_true", help="print everything, or with --grammar only the grammar, as one JSON object"
    )
    explain.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        help="tool choice for --grammar: auto (default), required, none, or the name of the tool to call",
    )
    explain.add_argument("--strict", action="store_true", help="make arguments follow their schemas, for --grammar")


def _add_export(export: argparse.ArgumentParser) -> None:
    export.set_defaults(run=_lazily("export"), command="export")
    which_format.add_arguments(export)
    form = export.add_argument_group("Form and file")
    form.add_argument("--response-template", action="store_true", required=True, help="response template, as JSON")
    form.add_argument(
        "--reader",
        choices=("transformers", "engine"),
        default="transformers",
        help="reader of the template: transformers (default, TRL too) or engine (vLLM, SGLang)",
    )
    form.add_argument("-o", "--output", default="-", metavar="FILE", help="file to write (default: -, stdout)")


def _add_formats(formats: argparse.ArgumentParser) -> None:
    formats.set_defaults(run=_lazily("formats"))
    formats.add_argument(
        "name",
        nargs="?",
        metavar="NAME|MODEL",
        help="format, or hub id, folder or type of a model (default: list all)",
    )
    formats.add_argument("--kind", choices=["reasoning", "tool"], help="kind of formats to list")
    formats.add_argument("--schema", action="store_true", help="print the JSON Schema of a Format as JSON")
    formats.add_argument("--json", action="store_true", help="print the list, or the Format of NAME, as JSON")


_TOOLS: Final = "tools that were offered: a JSON list, or a request that contains one (default: any name is a tool)"


def _add_tools(group: argparse._ActionsContainer, text: str = _TOOLS) -> None:
    group.add_argument("--tools", metavar="FILE", help=text)


def _add_policy(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="policy, such as unknown_tools=drop (repeatable; `untemplate explain` lists them)",
    )


def _dialect(text: str) -> str:
    if text not in ("gbnf", "lark", "structural_tag"):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of: gbnf, lark, structural_tag")
    return text
