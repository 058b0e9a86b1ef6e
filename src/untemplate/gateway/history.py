"""Messages as one model's chat template wants them.

Rules of this module:

* What a template insists on (arguments as objects or as text, content that is null, empty, or a list of parts, a role
  it does not know) is found by trying it, once per template; no template is known by name.
* The caller's messages are not changed.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from ..format import Format
from ..templates import ChatTemplate, TemplateError
from .errors import bad_request

__all__ = ["Wants", "for_template", "wants"]

_KEPT: Final = 64
_SWITCHES: Final = ("enable_thinking", "thinking", "enable_reasoning")
"""What templates call the variable that turns thinking on or off."""
_WORDS: Final = ("qzuserqz", "qznameqz", "qzkeyqz", "qzval\nuqz", "qzresultqz")


@dataclass(frozen=True, slots=True)
class Wants:
    """What a template wants of its messages."""

    arguments: str = "object"
    """Of earlier calls: ``object``, or ``text``: JSON in a string."""
    no_content: str = "null"
    """Of an assistant message with calls only: ``null``, ``empty`` or ``absent``."""
    parts: bool = False
    """Content that is a list of parts; text is not rendered."""
    developer: bool = False
    """The role is known; else it is ``system``."""
    switches: tuple[str, ...] = ()
    """Variables that turn thinking on and off."""
    effort: bool = False
    """Whether ``reasoning_effort`` is one of its variables."""


_known: OrderedDict[str, Wants] = OrderedDict()
_lock = threading.Lock()


def wants(template: ChatTemplate) -> Wants:
    """What this template wants. Rendered a dozen times for the first request, then known.

    Raises:
        TemplateError: it cannot be compiled.
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


def _probe(template: ChatTemplate) -> Wants:
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

    parts = user not in render(asked) and user in render({"role": "user", "content": [{"type": "text", "text": user}]})

    def call(arguments: Any, **message: Any) -> str:
        function = {"name": name, "arguments": arguments}
        calling = {"role": "assistant", "tool_calls": [{"id": "qzid00001", "type": "function", "function": function}]}
        answer = {"role": "tool", "tool_call_id": "qzid00001", "name": name, "content": result}
        return render(asked, {**calling, **message}, answer, tools=[tool])

    # Text that is put through tojson once more has its quotes escaped: then the object was wanted.
    ways = [
        (shape, empty)
        for shape, given in (("object", {key: value}), ("text", json.dumps({key: value})))
        for empty, message in (("null", {"content": None}), ("empty", {"content": ""}), ("absent", {}))
        if _reads(call(given, **message), name, key)
    ]
    arguments, no_content = ways[0] if ways else ("object", "null")
    developer = any("developer" in literal for literal in template.literals)
    return Wants(
        arguments=arguments,
        no_content=no_content,
        parts=parts,
        developer=developer,
        switches=tuple(v for v in _SWITCHES if v in variables),
        effort="reasoning_effort" in variables,
    )


def _reads(written: str, name: str, key: str) -> bool:
    """Whether a call came out: its name and its arguments, as neither Python's dict nor doubly escaped text."""
    plain = f"'{key}': " not in written and f'\\"{key}' not in written
    return name in written and key in written and plain and "None" not in written


def for_template(messages: list[dict[str, Any]], want: Wants, fmt: Format) -> list[dict[str, Any]]:
    """The messages as the template wants them.

    Raises:
        ApiError: a message that no text template can render (an image); names it.
    """
    ids = _Ids(fmt)
    names: dict[str, str] = {}
    written = []
    for i, message in enumerate(messages):
        role = message.get("role")
        one = dict(message)
        if role == "developer" and not want.developer:
            one["role"] = "system"
        if role == "function":  # OpenAI's older word
            one["role"] = "tool"
        one["content"] = _content(message.get("content"), f"messages[{i}].content", want.parts)
        calls = message.get("tool_calls")
        if calls:
            one["tool_calls"] = [_call(call, want, ids, names) for call in calls]
            if not one["content"]:
                one.pop("content")
                if want.no_content != "absent":
                    one["content"] = None if want.no_content == "null" else ""
        elif one["content"] is None:
            one["content"] = ""
        if one["role"] == "tool":
            given = str(message.get("tool_call_id") or "")
            one.setdefault("name", names.get(given, ""))
            if given:
                one["tool_call_id"] = ids.of(given)
        written.append(one)
    return written


def _content(content: Any, where: str, parts: bool) -> Any:
    if content is None:
        return None
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if parts else content
    texts = []
    for k, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") in ("text", "input_text", "output_text", "refusal"):
            texts.append(part.get("text") or part.get("refusal") or "")
        else:
            kind = part.get("type")
            raise bad_request(f"{where}[{k}]", f"parts of type {kind!r} need an engine that renders messages itself")
    return [{"type": "text", "text": text} for text in texts] if parts else "\n".join(texts)


def _call(call: dict[str, Any], want: Wants, ids: _Ids, names: dict[str, str]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if arguments is None or arguments == "":
        arguments = {}
    if want.arguments == "object" and isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) else {"arguments": arguments}
    elif want.arguments == "text" and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    function["arguments"] = arguments
    given = str(call.get("id") or "")
    names[given] = str(function.get("name") or "")
    return {"id": ids.next(given, names[given]), "type": "function", "function": function}


class _Ids:
    """Ids of calls in the shape that the family's template insists on, whatever client and server called them."""

    def __init__(self, fmt: Format) -> None:
        self._shape = fmt.ids
        self._map: dict[str, str] = {}
        self._count = 0

    def next(self, given: str, name: str) -> str:
        """The id of the next call of the history."""
        shaped = self._shaped(given, name)
        self._count += 1
        self._map[given] = shaped
        return shaped

    def of(self, given: str) -> str:
        """The id that a result answers to."""
        return self._map.get(given, given)

    def _shaped(self, given: str, name: str) -> str:
        if self._shape == "alphanumeric9":
            if len(given) == 9 and given.isascii() and given.isalnum():
                return given
            return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        if "{index}" in self._shape:
            return self._shape.replace("{name}", name).replace("{index}", str(self._count))
        return given
