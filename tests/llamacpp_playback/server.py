"""llama.cpp's server with the model, asked for one output at a time."""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .model import write_playback

_FIRST: Final = (4096, 16384)
"""Where the first output begins, at the least. All outputs are there twice: long prompts get the second one."""
_AFTER: Final = 64
"""Tokens that may follow an output which the grammar has changed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to one request."""

    message: dict[str, Any] | None
    """The message; ``None`` if it has none."""
    written: str = ""
    """The ASCII characters that the model wrote. They differ from those of the output if the grammar forbids one: the
    server does not report the bytes of other characters one by one."""
    exact: bool = False
    """True if the model wrote the output."""
    finish_reason: str = ""
    problem: str = ""
    """The error of the server, if it has no message."""


class Playback:
    """The server with one chat template.

    Args:
        template: the chat template.
        outputs: everything that the model will have to write.
        settings: parameters of llama.cpp by their names in xllamacpp.

    Raises:
        RuntimeError: the server does not start with this template.
    """

    def __init__(self, template: str, outputs: Sequence[str], settings: Mapping[str, Any] | None = None) -> None:
        import xllamacpp

        self._starts: dict[str, list[int]] = {}
        """The places of each output, in order."""
        self._lengths: dict[str, int] = {}
        """The tokens of the prompts that were asked so far."""
        spelled: dict[int, bytes] = {}
        at = 0
        for first in _FIRST:
            at = max(at, first)
            for output in dict.fromkeys(outputs):
                data = output.encode("utf-8", "surrogatepass")
                self._starts.setdefault(output, []).append(at)
                spelled[at] = data
                at += len(data) + _AFTER
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "playback.gguf"
            write_playback(path, spelled, at + _AFTER)
            params = xllamacpp.CommonParams()
            params.model.path = str(path)
            params.n_ctx = at + _AFTER
            params.n_parallel = 1
            params.warmup = False
            params.cpuparams.n_threads = 1
            params.verbosity = -1
            params.cache_ram_mib = 0
            params.use_jinja = True
            params.chat_template = template
            for name, value in (settings or {}).items():
                setattr(params, name, value)
            self._server = xllamacpp.Server(params)

    def ask(self, messages: Sequence[Mapping[str, Any]], output: str, **fields: Any) -> Answer:
        """Return the server's answer where the model writes ``output``.

        Args:
            messages: the conversation; the text of its first message of a user is made longer.
            output: one of the outputs.
            fields: further fields of the request (``tools``, ``chat_template_kwargs`` …).
        """
        request = {
            "messages": deepcopy(list(messages)),
            **fields,
            "temperature": 0.0,
            "cache_prompt": True,
            "logprobs": True,
        }
        try:
            length = self._length(request)
        except urllib.error.HTTPError as error:
            return Answer(None, problem=json.loads(error.read())["error"]["message"])
        start = next((place for place in self._starts[output] if place >= length), None)
        if start is None:
            return Answer(None, problem=f"the prompt is too long: {length} tokens")
        _fill(request["messages"], start - length)
        size = len(output.encode("utf-8", "surrogatepass"))
        answer = self._asked({**request, "max_tokens": size + _AFTER // 2})
        if "choices" not in answer:
            return Answer(None, problem=str(answer.get("error", answer)))
        if answer["usage"]["prompt_tokens"] != start:
            return Answer(None, problem="the template does not write the text of the user once, as it is")
        choice = answer["choices"][0]
        tokens = (choice.get("logprobs") or {}).get("content") or []
        written = "".join(chr(token["id"]) for token in tokens if token["id"] < 128)
        exact = written == "".join(filter(str.isascii, output))
        return Answer(choice["message"], written, exact, choice["finish_reason"])

    def _length(self, request: dict[str, Any]) -> int:
        """Return the length of the prompt in tokens. Nothing is generated: a token that does not fit the parser makes
        the whole answer an error."""
        key = json.dumps(request, default=str, sort_keys=True)
        if key not in self._lengths:
            prompt = self._posted("/apply-template", request)["prompt"]
            self._lengths[key] = len(self._posted("/tokenize", {"content": prompt, "parse_special": True})["tokens"])
        return self._lengths[key]

    def _posted(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        address = self._server.listening_address + path
        request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._server.handle_chat_completions(request)
        except RuntimeError as error:
            return {"error": str(error)}
        found: dict[str, Any] = json.loads(answer) if isinstance(answer, str | bytes) else answer
        return found


def _fill(messages: list[dict[str, Any]], count: int) -> None:
    """Make the text of the first message of a user longer by so many bytes."""
    first = next(message for message in messages if message["role"] == "user")
    content = first["content"]
    if isinstance(content, list):
        part = next(part for part in content if part.get("type") == "text")
        part["text"] += "x" * count
    else:
        first["content"] = content + "x" * count
