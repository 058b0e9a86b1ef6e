"""Checks that a live server turns what its model writes into the right message (``untemplate check``).

    look, probe ─▶ Session ─▶ checks: given texts, behaviour, other APIs, vendor ─▶ Results ─▶ Report ─▶ text, JSON, …

Rules of this package:

* A server is judged by its responses only. A failure is a response that no reading of its documentation allows.
* Nothing is repeated without limit, and every problem is one line.
* A key is never kept: `Server` replaces it in all that it returns.
"""

from ._client import Limits, Server, Unusable
from ._model import Capabilities, Message, Report, Result
from ._run import Order, run

__all__ = ["Capabilities", "Limits", "Message", "Order", "Report", "Result", "Server", "Unusable", "run"]
