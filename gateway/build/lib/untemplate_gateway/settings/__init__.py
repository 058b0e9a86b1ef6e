"""Settings of the gateway. `declarations` has all of them and the rules between them, `sources` reads them.

Secrets are never printed: not in ``repr``, not in errors, not by ``--show-settings``.
"""

from untemplate.errors import SettingsError

from .declarations import LlamaCpp, ModelSettings, Replay, Settings, Vllm
from .fields import BY_PATH, Field, fields, model_fields

__all__ = [
    "BY_PATH",
    "Field",
    "LlamaCpp",
    "ModelSettings",
    "Replay",
    "Settings",
    "SettingsError",
    "Vllm",
    "fields",
    "model_fields",
]
