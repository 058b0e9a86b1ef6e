"""``untemplate drift``: compare sampled token ids with those of their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .batch import FAILED
from .common import UsageError, print_json, print_text, reason

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> int:
    import msgspec

    from ...batch.drift import Drift, drift_of_files
    from ...errors import TokenizerError
    from ..tokens.decoding import load_tokenizer

    try:
        tokenizer = load_tokenizer(arguments.tokenizer)
    except TokenizerError as error:
        raise UsageError(f"--tokenizer {error}") from None
    figures = {"rows": 0, "differ": 0, "errors": 0, "tokens": 0, "tokens that differ": 0}
    try:
        for found in drift_of_files(arguments.input, tokenizer, arguments.ids_column):
            figures["rows"] += 1
            if not isinstance(found, Drift):
                figures["errors"] += 1
            else:
                figures["tokens"] += found.tokens
                figures["tokens that differ"] += len(found.sampled)
                if found.at is None:
                    continue
                figures["differ"] += 1
            print_json(msgspec.to_builtins(found), indent=None)
    except OSError as error:
        raise UsageError(f"{error.filename}: {reason(error)}") from None
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    if arguments.json:
        print_json(figures, indent=None)
    else:
        print_text("\n".join(f"{count:>12,}  {name}" for name, count in figures.items()))
    return FAILED if arguments.strict and (figures["differ"] or figures["errors"]) else 0
