"""``untemplate inspect``: serve the inspector alone, to this machine only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .common import UsageError, print_text, reason

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> None:
    from ..inspector.server import make_server

    try:
        server = make_server(arguments.port, arguments.site)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--port {arguments.port}: {reason(error)}; --port 0 chooses a free one") from None
    with server:
        print_text(f"untemplate inspects on http://127.0.0.1:{server.server_port}/inspect/ (Ctrl-C ends it)")
        sys.stdout.flush()
        server.serve_forever()
