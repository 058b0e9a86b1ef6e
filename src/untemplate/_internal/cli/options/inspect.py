"""Options of ``untemplate inspect``."""

from __future__ import annotations

import argparse
from typing import Final

from .common import CODES

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
Serve the inspector, a page that shows what each part of a raw output became and why, step by step; compares the stream
of a server with the right message; and shows what a chat template writes. It listens on 127.0.0.1 only and loads
nothing from elsewhere. The gateway serves the same page at /inspect.
"""
EPILOG: Final = """\
example:
  untemplate inspect --port 0
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--port", type=int, default=8009, metavar="N", help="port to listen on; 0: any free one (default: 8009)"
    )
    parser.add_argument(
        "--site", default="", metavar="URL", help="site with the inspector, for links that others can open"
    )
