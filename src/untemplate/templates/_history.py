"""Messages in the shape that a model's chat template needs.

Templates differ in the shape of arguments (objects or JSON text), of content (null, empty, or a list of parts) and in
the roles that they know. The needs of a template are found by rendering trial messages, once for each template; no
template is known by name. The caller's messages are not changed.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from ..errors import ContentPartError, TemplateError
from ..format import Format
from ._template import ChatTemplate

__all__ = ["TemplateNeeds", "for_template", "template_needs"]

_KEPT: Final = 64
_SWITCHES: Final = ("enable_thinking", "thinking", "enable_reasoning")
"""Names of the template variable that switches reasoning."""
_WORDS: Final = ("qzuserqz", "qznameqz", "qzkeyqz", "qzval\nuqz", "qzresultqz")


@dataclass(frozen=True, slots=True)
class TemplateNeeds:
    """Requirements of a template for its messages."""

    arguments: str = "object"
    """Arguments of earlier calls: ``object``, or ``text`` for JSON text."""
    no_content: str = "null"
    """Content of an assistant message that has only calls: ``null``, ``empty`` or ``absent``."""
    parts: bool = False
    """True if content must be a list of parts, because text is not rendered."""
    images: bool = False
    """True if a part ``{"type": "image"}`` is rendered as the marker of an image."""
    developer: bool = False
    """True if the role ``developer`` is known; otherwise it becomes ``system``."""
    switches: tuple[str, ...] = ()
    """Variables that switch reasoning."""
    effort: bool = False
    """True if ``reasoning_effort`` is one of its variables."""


_known: OrderedDict[str, TemplateNeeds] = OrderedDict()
_lock = threading.Lock()


def template_needs(template: ChatTemplate) -> TemplateNeeds:
    """Return the needs of a template. The first request renders it a dozen times; then the result is cached.

    Raises:
        TemplateError: the template cannot be compiled.
    """
    with _lock:
        found = _known.get(template.sha256)
    if found is None:
        found = _probe(template)
        with _lock:
            _known[template.sha256] = found
            if len(_known) > _KEPT:
                _known.popitem(last=False)
    return found


def _probe(template: ChatTemplate) -> TemplateNeeds:
    variables = template.variables
    user, name, key, value, result = _WORDS
    tool = {
        "type": "function",
        "function": {
            "name": name,
            "description": name,
            "parameters": {"type": "object", "properties": {key: {"type": "string", "description": key}}},
        },
    }
    asked = {"role": "user", "content": user}

    def render(*messages: dict[str, Any], tools: Any = None) -> str:
        try:
            return template.render(messages, tools=tools, add_generation_prompt=True)
        except TemplateError:
            return ""

    text = {"type": "text", "text": user}
    in_parts = render({"role": "user", "content": [text]})
    seen = render({"role": "user", "content": [text, {"type": "image"}]})
    parts = user not in render(asked) and user in in_parts
    images = user in in_parts and user in seen and seen != in_parts and "'type'" not in seen

    def call(arguments: Any, **message: Any) -> str:
        function = {"name": name, "arguments": arguments}
        calling = {"role": "assistant", "tool_calls": [{"id": "qzid00001", "type": "function", "function": function}]}
        answer = {"role": "tool", "tool_call_id": "qzid00001", "name": name, "content": result}
        return render(asked, {**calling, **message}, answer, tools=[tool])

    # A template that applies tojson to JSON text escapes its quotes: such a template needs objects.
    ways = [
        (shape, empty)
        for shape, given in (("object", {key: value}), ("text", json.dumps({key: value})))
        for empty, message in (("null", {"content": None}), ("empty", {"content": ""}), ("absent", {}))
        if _reads(call(given, **message), name, key)
    ]
    arguments, no_content = ways[0] if ways else ("object", "null")
    developer = any("developer" in literal for literal in template.literals)
    return TemplateNeeds(
        arguments=arguments,
        no_content=no_content,
        parts=parts,
        images=images,
        developer=developer,
        switches=tuple(v for v in _SWITCHES if v in variables),
        effort="reasoning_effort" in variables,
    )


def _reads(written: str, name: str, key: str) -> bool:
    """True if a call was rendered with name and arguments, neither as a Python dict nor escaped twice."""
    plain = f"'{key}': " not in written and f'\\"{key}' not in written
    return name in written and key in written and plain and "None" not in written


def for_template(
    messages: list[dict[str, Any]], needs: TemplateNeeds, fmt: Format, *, images: bool = False
) -> list[dict[str, Any]]:
    """Return the messages in the shape that the template needs.

    Args:
        images: keep parts ``{"type": "image"}``, if the template writes a marker for them.

    Raises:
        ContentPartError: a text template cannot render a message, because it has an image, for example.
    """
    ids = _Ids(fmt)
    names: dict[str, str] = {}
    written = []
    for i, message in enumerate(messages):
        role = message.get("role")
        one = dict(message)
        if role == "developer" and not needs.developer:
            one["role"] = "system"
        if role == "function":  # OpenAI's older name of the role
            one["role"] = "tool"
        one["content"] = _content(
            message.get("content"), f"messages[{i}].content", needs.parts, images and needs.images
        )
        calls = message.get("tool_calls")
        if calls:
            one["tool_calls"] = [_call(call, needs, ids, names) for call in calls]
            if not one["content"]:
                one.pop("content")
                if needs.no_content != "absent":
                    one["content"] = None if needs.no_content == "null" else ""
        elif one["content"] is None:
            one["content"] = ""
        if one["role"] == "tool":
            given = str(message.get("tool_call_id") or "")
            one.setdefault("name", names.get(given, ""))
            if given:
                one["tool_call_id"] = ids.of(given)
        written.append(one)
    return written


def _content(content: Any, where: str, parts: bool, images: bool) -> Any:
    if content is None:
        return None
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if parts else content
    texts: list[Any] = []
    for k, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") in ("text", "input_text", "output_text", "refusal"):
            texts.append(part.get("text") or part.get("refusal") or "")
        elif images and part.get("type") == "image":
            texts.append(part)
            parts = True
        else:
            kind = part.get("type")
            raise ContentPartError(
                f"{where}[{k}]", f"parts of type {kind!r} need an engine that renders messages itself"
            )
    if not parts:
        return "\n".join(texts)
    return [{"type": "text", "text": text} if isinstance(text, str) else text for text in texts]


def _call(call: dict[str, Any], needs: TemplateNeeds, ids: _Ids, names: dict[str, str]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if arguments is None or arguments == "":
        arguments = {}
    if needs.arguments == "object" and isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) else {"arguments": arguments}
    elif needs.arguments == "text" and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    function["arguments"] = arguments
    given = str(call.get("id") or "")
    names[given] = str(function.get("name") or "")
    return {"id": ids.next(given, names[given]), "type": "function", "function": function}


class _Ids:
    """Ids of calls in the shape that the model's template needs, whatever their shape in the request."""

    def __init__(self, fmt: Format) -> None:
        self._shape = fmt.ids
        self._map: dict[str, str] = {}
        self._count = 0

    def next(self, given: str, name: str) -> str:
        """Return the id of the next call of the history."""
        shaped = self._shaped(given, name)
        self._count += 1
        self._map[given] = shaped
        return shaped

    def of(self, given: str) -> str:
        """Return the id of the call that a result belongs to."""
        return self._map.get(given, given)

    def _shaped(self, given: str, name: str) -> str:
        if self._shape == "alphanumeric9":
            if len(given) == 9 and given.isascii() and given.isalnum():
                return given
            return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        if "{index}" in self._shape:
            return self._shape.replace("{name}", name).replace("{index}", str(self._count))
        return given
