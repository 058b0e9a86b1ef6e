"""Threads for work in Python that takes more than a few milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_POOL: Final = ThreadPoolExecutor(2, "untemplate-work")
"""Few: each thread that computes delays the event loop, and more of them do not compute faster."""
_SLOW: Final = ThreadPoolExecutor(1, "untemplate-slow-work")


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in one of a few threads shared by all requests, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, partial(function, *args, **kwargs))


async def in_slow_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that may take seconds: reading a client's template. Requests without such work do not wait."""
    return await asyncio.get_running_loop().run_in_executor(_SLOW, partial(function, *args, **kwargs))
