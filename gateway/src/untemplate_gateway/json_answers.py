"""JSON answers without a grammar: the prompt asks for them, they are checked, and the model is asked again.

The instruction comes at the end of the last message of the user, which every chat template can write. An answer in a
fenced block counts as its content.

Schemas with patterns, and large schemas or answers, are checked in a worker process: jsonschema-rs keeps Python's lock
meanwhile, up to a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from untemplate._internal.schemas.strict import compiled
from untemplate._internal.schemas.validation import validate

from .errors import bad_request, unsupported
from .generation import Generation
from .manager.model import Model
from .processes import Workers, packed
from .threads import in_thread

ATTEMPTS: Final = 3
"""Most answers that are generated until one is the JSON that the request asks for."""
_LARGEST: Final = 64 * 1024
"""Most bytes of a schema, which is a part of the prompt."""
_AT_ONCE: Final = 4096
"""Bytes of a schema without patterns that are checked in this process."""
_SHORT: Final = 64 * 1024
"""Characters of an answer that are checked in this process."""
_PATIENCE: Final = 10.0
"""Seconds that a check may take."""
_WORKERS: Final = Workers()
_FENCED: Final = re.compile(r"\s*```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_AGAIN: Final = "Your answer cannot be used: {problem}. Answer again, with nothing but the JSON."


class JsonAnswer:
    """The JSON that a request asks for.

    Args:
        schema: the schema of the answer; ``None`` for any object.

    Raises:
        ApiError: the schema is too large for a prompt.
    """

    def __init__(self, schema: dict[str, Any] | None) -> None:
        self._schema: dict[str, Any] = {"type": "object"} if schema is None else schema
        text = msgspec.json.encode(self._schema)
        self._cheap = len(text) <= _AT_ONCE and b"attern" not in text
        if len(text) > _LARGEST:
            problem = f"the schema has {len(text)} bytes; without a grammar, at most {_LARGEST} are possible"
            raise bad_request("response_format", problem)
        self._wanted = "one JSON object" if schema is None else f"JSON that follows this JSON schema:\n{text.decode()}"

    @classmethod
    def of(cls, model: Model, request: Generation) -> JsonAnswer | None:
        """Return the JSON that a request asks for; ``None`` if it asks for none, or the engine takes care of it.

        Raises:
            ApiError: as the constructor; or the prompt is raw, and cannot ask for JSON.
        """
        wanted, takes = request.response_format, model.engine.takes
        if wanted is None or takes.grammar is not None or takes.messages:
            return None
        if request.messages is None:
            raise unsupported("response_format", "needs messages, or an engine that takes grammars")
        request.notes.add("response_format: the prompt asks for JSON, because the engine takes no grammar")
        return cls(wanted["json_schema"]["schema"] if wanted["type"] == "json_schema" else None)

    def asked(self, messages: Sequence[dict[str, Any]], *, tools: bool) -> list[dict[str, Any]]:
        """Return the messages with the instruction to answer with JSON.

        Args:
            tools: True if the model may call tools instead of answering.
        """
        when = "If you do not call a tool, answer" if tools else "Answer"
        instruction = f"{when} with nothing but {self._wanted}"
        changed = list(messages)
        users = [i for i, message in enumerate(changed) if message["role"] == "user"]
        if not users:
            return [*changed, {"role": "user", "content": instruction}]
        last = changed[users[-1]]
        content = last["content"]
        if isinstance(content, str):
            content = f"{content}\n\n{instruction}"
        else:
            content = [*content, {"type": "text", "text": instruction}]
        changed[users[-1]] = {**last, "content": content}
        return changed

    def again(self, messages: Sequence[dict[str, Any]], answer: str, problem: str) -> list[dict[str, Any]]:
        """Return the messages that ask again after an answer that cannot be used."""
        asked = {"role": "user", "content": _AGAIN.format(problem=problem)}
        return [*messages, {"role": "assistant", "content": answer}, asked]

    async def check(self) -> None:
        """Check the schema.

        Raises:
            ApiError: it is not valid.
        """
        try:
            problem = _compiled(schema=self._schema) if self._cheap else await _apart(_compiled, schema=self._schema)
        except ValueError as error:
            problem = str(error)
        if problem:
            raise bad_request("response_format", problem)

    async def problem(self, text: str) -> str:
        """Return why an answer is not the JSON that is asked for; empty if it is."""
        if self._cheap and len(text) <= _SHORT:
            return await in_thread(_problem, schema=self._schema, text=text)
        return await _apart(_problem, schema=self._schema, text=text)


async def _apart(function: Callable[..., str], **sent: Any) -> str:
    """Return the result of a function in a worker process."""
    try:
        found: str = await _WORKERS.run(packed(function, **sent), str, _PATIENCE)
    except (TimeoutError, RuntimeError, MemoryError):
        return "too large or too complex to be checked"
    return found


def _compiled(*, schema: dict[str, Any]) -> str:
    compiled(schema, "its schema is not valid")
    return ""


def _problem(*, schema: dict[str, Any], text: str) -> str:
    return next(map(str, validate(text, schema, full=True, objects=False)), "")


def without_fence(text: str) -> str:
    """Return the content of a fenced block, if the text is one; otherwise the text."""
    found = _FENCED.fullmatch(text)
    return text if found is None else found[1]
