"""``untemplate export``: write a Format in a form that other projects read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...policy import Policy
from . import common
from .common import UsageError, print_text, write_file
from .which_format import parser_of

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> None:
    from ...format import FormatError
    from ...format._response_template.export import export

    fmt = parser_of(arguments, Policy()).format
    try:
        exported = export(fmt, arguments.reader)
    except FormatError as error:
        raise UsageError(f"{fmt.name} cannot be written as a response template: {error}") from None
    text = json.dumps(exported.template, indent=2, ensure_ascii=False)
    if arguments.output == "-":
        print_text(text)
    else:
        write_file(arguments.output, text + "\n", arguments.output)
    for part in exported.left_out:
        common.note(f"left out: {part}")
