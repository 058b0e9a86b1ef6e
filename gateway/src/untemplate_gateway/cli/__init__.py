"""The gateway's commands of ``untemplate``, found by the entry point group ``untemplate.commands``.

Nothing is imported for their help texts. ``serve`` gets its options, which are its settings, when it is the command to
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from . import models

if TYPE_CHECKING:
    from untemplate._internal.cli.arguments import Command

_CODES: Final = """\
exit codes: 0 stopped by a signal; 2 a wrong option, or a model or an address that cannot be used; 130 interrupted.
"""
_DESCRIPTION: Final = """\
Serves a model with correct reasoning and tool calls: OpenAI's APIs (chat completions, completions, responses),
Anthropic's messages and Ollama's, streamed or whole. The format that the model writes is found by its chat template.

MODEL is a GGUF file (llama.cpp), a folder or a hub id (vLLM; org/repo:Q4_K_M is one quantization of
a GGUF repository), demo (the demonstration model, if it is installed), or replay: made-up outputs in many formats,
with no model at all. --upstream puts the gateway in front of another server.
"""
_EPILOG: Final = """\
examples:
  untemplate serve replay                                    try it: no model needed
  untemplate serve demo --tour                               a very small model, and a conversation with it
  untemplate serve model.gguf --alias gpt-4o-mini
  untemplate serve unsloth/Qwen3-8B-GGUF:Q4_K_M --api-key secret
  untemplate serve Qwen/Qwen3-8B --upstream http://localhost:8001/v1
  untemplate serve --upstream-chat http://localhost:11434/v1 --upstream-model qwen3
  untemplate serve model.gguf --chat-template llama3_json    a template of ours, for a model whose own lacks tools
  untemplate serve --config untemplate.toml --show-settings

Every option is a key of the file and a variable, too: --max-loaded, max_loaded and UNTEMPLATE_MAX_LOADED. Further
settings have no option of their own: --set max_body_bytes=1000000.
Flags go before the environment, the environment before the file.
"""


def add_commands(command: Command, argv: Sequence[str]) -> None:
    """Add the commands.

    Args:
        command: adds one.
        argv: the command line.
    """
    serve = command("serve", "serve OpenAI's, Anthropic's and Ollama's APIs", _DESCRIPTION, _EPILOG, _CODES)
    if argv[:1] == ["serve"]:
        from .serve import add_arguments

        add_arguments(serve)
    models.add_commands(command)
