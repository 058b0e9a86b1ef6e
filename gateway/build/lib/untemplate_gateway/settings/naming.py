"""Names of settings, and values in errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from untemplate._internal.suggestions import close_names, did_you_mean

ENVIRONMENT: Final = "UNTEMPLATE_"
"""Prefix of all variables."""
HIDDEN: Final = "***"
"""Stands for a secret."""


def without_password(text: str) -> str:
    """Return a text, without the password if it is a URL that has one."""
    return re.sub(r"(?<=://)[^/?#]*@", f"{HIDDEN}@", text)


_REMOVED: Final = {
    "inspect_outputs": "log_raw, and untemplate.raw in a request, give the raw outputs",
    "memory_budget": "max_loaded bounds the number of loaded models instead",
    "upstream_replicas": "fallbacks of [models.NAME], or a load balancer in front of the servers, do its work",
}
"""Settings of earlier versions → what there is instead."""


_MOST: Final = 40
"""Most names that an error lists."""


def nearest(name: str, valid: Mapping[str, Any]) -> str:
    """Return the end of an error for an unknown name: what replaced it, the most similar valid name, or all of them if
    they are few."""
    removed = _REMOVED.get(name.removeprefix(ENVIRONMENT).lower())
    if removed:
        return f", which was removed: {removed}"
    if len(valid) > _MOST:
        listed = "; `untemplate serve --show-settings` lists all settings"
    else:
        listed = f"; valid names: {', '.join(sorted(valid))}"
    return did_you_mean(close_names(name, valid, 1)) or listed
