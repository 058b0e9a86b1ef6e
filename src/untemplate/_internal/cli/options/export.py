"""Options of ``untemplate export``."""

from __future__ import annotations

import argparse
from typing import Final

from .. import which_format
from .common import CODES

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
Write the format of a model in a form that other projects read. A response template goes into tokenizer_config.json, as
"response_template": transformers (5.13 and later) and TRL then parse the model's outputs without untemplate. Parts of
the format that a response template cannot hold are listed on stderr; if calls would be wrong, that is an error.
"""
EPILOG: Final = """\
examples:
  untemplate export --model ./my-model --response-template
  untemplate export --format hermes --reasoning qwen3 --response-template -o response_template.json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    which_format.add_arguments(parser)
    form = parser.add_argument_group("Form and file")
    form.add_argument("--response-template", action="store_true", required=True, help="response template, as JSON")
    form.add_argument(
        "--reader",
        choices=("transformers", "engine"),
        default="transformers",
        help="reader of the template: transformers (default, TRL too) or engine (vLLM, SGLang)",
    )
    form.add_argument("-o", "--output", default="-", metavar="FILE", help="file to write (default: -, stdout)")
