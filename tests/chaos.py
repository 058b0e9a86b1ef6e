"""Simulate a busy machine: with ``pytest -p tests.chaos``, event loops, threads and sockets wait at random.

A test that passes without it and fails with it depends on timing, or has found a race in the code. ``CHAOS=7`` sets the
seed; what runs at the same time still differs between runs. `make chaos` runs the gateway's tests this way.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from asyncio.base_events import BaseEventLoop
from typing import Any

import httpcore._backends.sync as blocking

_random = random.Random(os.environ.get("CHAOS", "0") + os.environ.get("PYTEST_XDIST_WORKER", ""))
_LONG = 0.5
"""Seconds of a rare long wait."""


def _before(owner: Any, name: str, share: float, longest: float) -> None:
    """Make one in ``1 / share`` calls wait up to ``longest`` seconds first, and one in 500 of those `_LONG` seconds."""
    method = getattr(owner, name)

    def waiting(*args: Any, **kwargs: Any) -> Any:
        drawn = _random.random()
        if drawn < share:
            time.sleep(_LONG if drawn < share / 500 else _random.random() ** 2 * longest)
        return method(*args, **kwargs)

    setattr(owner, name, waiting)


sys.setswitchinterval(1e-5)
_before(BaseEventLoop, "_run_once", 0.04, 0.03)
_before(threading.Thread, "run", 0.3, 0.1)
_before(blocking.SyncStream, "write", 0.4, 0.05)
_before(blocking.SyncStream, "read", 0.3, 0.05)
