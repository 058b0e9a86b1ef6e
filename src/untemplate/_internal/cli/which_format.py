"""The options that name a Format, a template or a model, and the parser for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..suggestions import brief
from . import common
from .common import UsageError, quiet

if TYPE_CHECKING:
    import argparse

    from ...policy import Policy
    from ..output_parser import OutputParser


def completed_by(names: Callable[..., list[str]], *arguments: argparse.Action) -> None:
    """Complete the values of arguments in shells by a function of argcomplete."""
    for argument in arguments:
        argument.completer = names  # type: ignore[attr-defined]


def names_and_files(prefix: str, **_: Any) -> list[str]:
    """Return the names that begin so, of two formats as well; and the files."""
    from argcomplete.completers import FilesCompleter

    from ...formats import names

    calls, plus, _reasoning = prefix.rpartition("+")
    found = [f"{calls}{plus}{name}" for name in names("reasoning" if plus else None)]
    return [*found, *FilesCompleter(["json"])(prefix)]


def names_of_reasoning(**_: Any) -> list[str]:
    """Return the names of reasoning."""
    from ...formats import names

    return names("reasoning")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("Format (one of these)")
    name = which.add_argument(
        "--format",
        metavar="NAME|FILE.json",
        help="name from `untemplate formats`, two (hermes+qwen3: calls+reasoning), or a Format as JSON",
    )
    which.add_argument("--template", metavar="FILE", help="chat template from which the format is inferred")
    which.add_argument(
        "--model", metavar="ID|FOLDER", help="hub id, folder or GGUF file for which the format is selected"
    )
    enforced = which.add_argument(
        "--enforce-parser",
        metavar="NAME|FILE.json",
        help="format to use regardless of the model or template; one of calls only keeps the selected reasoning",
    )
    reasoning = which.add_argument(
        "--reasoning", metavar="NAME", help="format whose reasoning markers replace those of the named format"
    )
    completed_by(names_and_files, name, enforced)
    completed_by(names_of_reasoning, reasoning)


def names_format(arguments: argparse.Namespace) -> bool:
    """True if an option names a Format, a template or a model."""
    names = ("format", "template", "model", "enforce_parser", "reasoning")
    return any(getattr(arguments, name) is not None for name in names)


def parser_of(arguments: argparse.Namespace, policy: Policy) -> OutputParser:
    """Return the parser for the options that name a Format, a template or a model."""
    from ...errors import UnknownFormatError
    from ...format import FormatError
    from ..output_parser import OutputParser

    enforced = arguments.enforce_parser
    given = [o for o in ("format", "template", "model", "enforce_parser") if getattr(arguments, o) is not None]
    if not given:
        raise UsageError(
            f"{arguments.command} needs a format: --format NAME (`untemplate guess FILE` finds it), or --template, "
            "--model or --enforce-parser"
        )
    if "format" in given and len(given) > 1:
        other = given[1].replace("_", "-")
        raise UsageError(f"--format and --{other} exclude each other")
    if arguments.reasoning is not None and "format" not in given and enforced is None:
        raise UsageError("--reasoning needs --format or --enforce-parser")
    try:
        if arguments.format is not None:
            return OutputParser.named(arguments.format, reasoning=arguments.reasoning, policy=policy)
        if enforced is None and arguments.model is None:
            return _from_template(arguments.template, policy)
        return _selected(arguments, policy)
    except FormatError as error:
        option = "--format" if enforced is None else "--enforce-parser"
        hint = "; --model takes an id of the hub" if _is_hub_id(arguments.format or "") else ""
        raise UsageError(f"{option} {error}{_for_templates(arguments)}{hint}") from None
    except UnknownFormatError as error:
        raise UsageError(error.short + _for_templates(arguments)) from None
    except ValueError as error:  # an unknown name, two formats that cannot be combined, an invalid environment variable
        raise UsageError(str(error)) from None


def _is_hub_id(name: str) -> bool:
    """True if this is no file, and is spelled as ``owner/name``."""
    return name.count("/") == 1 and not name.endswith(".json") and name[0] not in "./~" and not os.path.exists(name)


def _for_templates(arguments: argparse.Namespace) -> str:
    """Return a hint if --format names a chat template."""
    is_template = (arguments.format or "").endswith((".jinja", ".jinja2", ".j2"))
    return "; --template takes a chat template" if is_template else ""


def _from_template(path: str, policy: Policy) -> OutputParser:
    from ...analysis import AnalysisError
    from ...templates import TemplateError
    from ..output_parser import OutputParser

    try:
        parser = OutputParser.from_template(path, policy=policy)
    except TemplateError as error:
        raise UsageError(f"--template {error}") from None
    except AnalysisError as error:
        raise UsageError(f"--template {path}: {error}") from None
    certificate = parser.certificate
    if certificate is not None and not certificate.certified:
        failed = ", ".join(k for k, v in certificate.capabilities.items() if v == "failed")
        common.note(
            f"warning: the format inferred from {path} is not certified ({failed}); untemplate explain shows why"
        )
    return parser


def _selected(arguments: argparse.Namespace, policy: Policy) -> OutputParser:
    from ...formats import IncompatibleFormatsError, UnknownFormatError
    from ...selection import select
    from ..output_parser import OutputParser

    try:
        with quiet():
            selection = select(
                arguments.model,
                template=arguments.template,
                enforce=arguments.enforce_parser,
                reasoning=arguments.reasoning,
            )
    except (UnknownFormatError, IncompatibleFormatsError) as error:
        raise UsageError(f"--enforce-parser: {brief(error)}") from None
    if selection.warning:
        common.note("warning: " + "; ".join((selection.warning, *selection.notes)))
    return OutputParser.from_format(selection.format, policy=policy)
