"""What a template writes, found without the analysis: by looking for words of messages in renderings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from untemplate.analysis._certify import Certificate
from untemplate.errors import TemplateError
from untemplate.templates import ChatTemplate

__all__ = ["contradictions"]

_THOUGHT = "wondering about herons"
_CONTENT = "A heron stands there."
_VALUE = "grey plumage"
_STANDARD = {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}


def contradictions(template: ChatTemplate, certificate: Certificate) -> Iterator[str]:
    """Yield each ability that is ``no`` in the certificate although a rendering shows the part of the message."""
    abilities = certificate.capabilities
    if abilities["reasoning"] == "no" and _shown(
        template, {"content": _CONTENT, "reasoning_content": _THOUGHT}, _THOUGHT
    ):
        yield "reasoning"
    for arguments in ({"looks": _VALUE}, f'{{"looks": "{_VALUE}"}}'):
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "watch", "arguments": arguments}}
        for content in (None, "", _CONTENT):
            message = {"content": content, "tool_calls": [call]}
            if abilities["calls"] == "no" and _shown(template, message, _VALUE):
                yield "calls"
                return


def _shown(template: ChatTemplate, message: dict[str, Any], word: str) -> bool:
    """True if the template writes a word of a message of the assistant, in the last place or before a question."""
    conversation = [{"role": "user", "content": "What is there?"}, {"role": "assistant", **message}]
    tool = {"type": "function", "function": {"name": "watch", "description": "", "parameters": {"type": "object"}}}
    switches: list[dict[str, Any]] = [{}]
    switches += [{name: value} for name in template.variables if name not in _STANDARD for value in (True, False)]
    for messages in (conversation, [*conversation, conversation[0]]):
        for tools in (None, [tool]):
            for settings in switches:
                try:
                    if word in template.render(messages, tools=tools, **settings):
                        return True
                except (TemplateError, ValueError):
                    continue
    return False
