"""A chat template, and what it renders."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from ..errors import TemplateError, TemplateLimitError
from .inputs import REASONING_FIELDS, Inputs
from .limits import MAX_SOURCE

if TYPE_CHECKING:
    from .sandbox import Program

__all__ = ["ChatTemplate"]

_PROGRAMS: Final = 256
"""Compiled templates that are kept."""
_TAG: Final = "CONTINUE_FINAL_MESSAGE_TAG "
"""Hugging Face's mark for the end of a message to be continued."""


class ChatTemplate:
    """A model's chat template.

    Args:
        source: the template.
        bos_token, eos_token: what it knows under these names.
        name: what errors call it.
        named: further templates of the same model. ``tool_use`` is taken when tools are given; others by
            :meth:`variant`.
        special_tokens: further tokens that it knows (``pad_token`` …).
        now: the time that ``strftime_now`` tells, or what tells it; the local time by default.

    Raises:
        TemplateLimitError: the template is too long to be one.
        TypeError: the source is no string.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        name: str | None = None,
        named: Mapping[str, str] | None = None,
        special_tokens: Mapping[str, str] | None = None,
        now: datetime | Callable[[], datetime] | None = None,
    ) -> None:
        self.source = source
        self.name = name
        self.named: Mapping[str, str] = dict(named or {})
        self.special_tokens: Mapping[str, str] = {
            **(special_tokens or {}), "bos_token": bos_token, "eos_token": eos_token
        }  # fmt: skip
        self.now = now
        for one in (source, *self.named.values()):
            if not isinstance(one, str):
                raise TypeError(f"a template is a str, not {type(one).__name__}")
            if len(one) > MAX_SOURCE:
                problem = f"the template is too long: {len(one)} characters, at most {MAX_SOURCE}"
                raise TemplateLimitError(problem, name=name)

    @classmethod
    def load(cls, source: str | PathLike[str], *, now: datetime | Callable[[], datetime] | None = None) -> ChatTemplate:
        """The template of a model, wherever it is.

        Args:
            source: the template itself, a ``.jinja`` file, a ``tokenizer_config.json`` or ``chat_template.json``, a
                model's folder, a GGUF file, or a hub id (needs ``huggingface_hub``).
            now: as in the constructor.

        Raises:
            TemplateError: there is none, it cannot be read or reached, or a package is missing.
        """
        from .sources import read

        found = read(source)
        return cls(
            found.source,
            bos_token=found.tokens.get("bos_token", ""),
            eos_token=found.tokens.get("eos_token", ""),
            name=found.name,
            named=found.named,
            special_tokens=found.tokens,
            now=now,
        )

    @property
    def bos_token(self) -> str:
        return self.special_tokens["bos_token"]

    @property
    def eos_token(self) -> str:
        return self.special_tokens["eos_token"]

    @cached_property
    def sha256(self) -> str:
        """Of everything that decides what is rendered, the inputs and the time aside."""
        digest = sha256()
        for key, value in (("", self.source), *sorted(self.named.items()), *sorted(self.special_tokens.items())):
            for part in (key, value):
                data = part.encode("utf-8", "surrogatepass")
                digest.update(b"%d:" % len(data) + data)
        return digest.hexdigest()

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The strings and the text that the template itself writes down, in order, each once."""
        return tuple(dict.fromkeys(text for source in self._sources for text in self._program(source).literals))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names that the template expects from outside, sorted: ``messages``, ``tools``, ``enable_thinking`` …"""
        return tuple(sorted({name for source in self._sources for name in self._program(source).variables}))

    @property
    def _sources(self) -> list[str]:
        return [self.source, *(text for name, text in self.named.items() if name == "tool_use")]

    def variant(self, name: str) -> ChatTemplate:
        """One of the named templates (``rag``, ``tool_use`` …) as a template of its own.

        Raises:
            TemplateError: there is none of that name.
        """
        if name not in self.named:
            names = ", ".join(sorted(self.named)) or "none"
            raise TemplateError(f"no template is named {name!r} (there are: {names})", name=self.name)
        return ChatTemplate(
            self.named[name],
            bos_token=self.bos_token,
            eos_token=self.eos_token,
            name=f"{self.name or 'template'}[{name}]",
            special_tokens=self.special_tokens,
            now=self.now,
        )

    def compile(self) -> None:
        """Compiles the template, if that has not been done.

        Raises:
            TemplateError: it is not a template.
        """
        for source in self._sources:
            self._program(source)

    def render(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        **kwargs: Any,
    ) -> str:
        """The prompt, as ``apply_chat_template(…, tokenize=False)`` makes it.

        Args:
            messages, tools, documents: dicts, or models that dump themselves as dicts; tools are schemas. The template
                sees copies, in which reasoning goes by ``reasoning_content`` and ``thinking``, whatever it was called.
            add_generation_prompt: whether to append what opens the assistant's turn.
            continue_final_message: end inside the final message, so that the model continues it: its ``content``, or
                the field of this name (``reasoning_content``).
            kwargs: variables of the template (``enable_thinking``, ``reasoning_effort`` …).

        Raises:
            TemplateError: the template cannot render this. Among its kinds: `TemplateRaised`, `TemplateLimitError`.
            ValueError: arguments that exclude each other.
            TypeError: messages, tools or documents that are no dicts.
        """
        if continue_final_message and add_generation_prompt:
            raise ValueError("continue_final_message and add_generation_prompt exclude each other")
        source = self.named["tool_use"] if tools is not None and "tool_use" in self.named else self.source
        inputs = Inputs()
        try:
            chat = inputs.messages(messages)
            marked = _mark(chat, continue_final_message, source) if continue_final_message else ""
            variables = {
                **self.special_tokens,
                **{key: inputs.copy(value) for key, value in kwargs.items()},
                "messages": chat,
                "tools": None if tools is None else inputs.dicts("tools", tools),
                "documents": None if documents is None else inputs.dicts("documents", documents),
                "add_generation_prompt": add_generation_prompt,
            }
        except RecursionError:
            raise TemplateError("the messages are nested too deeply", name=self.name) from None
        program = self._program(source)
        try:
            text = program.run(variables, inputs, self._clock)
        except TemplateError as error:
            error.name = error.name or self.name
            raise
        return _cut(text, marked, self.name) if continue_final_message else text

    def _clock(self) -> datetime:
        if isinstance(self.now, datetime):
            return self.now
        return datetime.now() if self.now is None else self.now()

    def _program(self, source: str) -> Program:
        try:
            return _compiled(source)
        except TemplateError as error:
            error.name = error.name or self.name
            raise

    def __repr__(self) -> str:
        return f"ChatTemplate({self.name or self.sha256[:12]!r}, {len(self.source)} characters)"


# -- Compiled templates, by source --------------------------------------------------------------------------------

_programs: OrderedDict[bytes, Program] = OrderedDict()
_lock = threading.Lock()


def _compiled(source: str) -> Program:
    key = sha256(source.encode("utf-8", "surrogatepass")).digest()
    with _lock:
        program = _programs.get(key)
        if program is not None:
            _programs.move_to_end(key)
            return program
    from .sandbox import compile_source

    program = compile_source(source)
    with _lock:
        _programs[key] = program
        if len(_programs) > _PROGRAMS:
            _programs.popitem(last=False)
    return program


# -- The final message, continued ---------------------------------------------------------------------------------


def _mark(chat: list[Any], field: bool | str, source: str) -> str:
    """Puts the tag behind the final message. Returns the text before it."""
    if not chat:
        raise TemplateError("continue_final_message: there is no message to continue")
    final = chat[-1]
    key = field if isinstance(field, str) else "content"
    keys = [key]
    if key in REASONING_FIELDS:  # its copies go by the other names, and the template reads one of them
        key = next((name for name in (key, *REASONING_FIELDS) if final.get(name) is not None), key)
        keys = [name for name in REASONING_FIELDS if final.get(name) == final.get(key)]
    if not any(name in source for name in keys):
        raise TemplateError(f"continue_final_message: the template does not know {key!r}")
    text = final.get(key)
    if isinstance(text, (list, tuple)):
        part = next((part for part in reversed(text) if isinstance(part, dict) and "text" in part), {})
        text = part.get("text")
        if isinstance(text, str):
            part["text"] = text + _TAG
    elif isinstance(text, str):
        for name in keys:
            final[name] = text + _TAG
    if not isinstance(text, str):
        raise TemplateError(f"continue_final_message: the final message has no {key!r} to continue")
    return text


def _cut(text: str, marked: str, name: str | None) -> str:
    """The rendered chat up to the tag."""
    tag = text.rfind(_TAG.strip())
    if tag < 0 or marked.strip() not in text:
        raise TemplateError("continue_final_message: the template does not write the final message", name=name)
    return text[:tag] if text.startswith(_TAG, tag) else text[:tag].rstrip()
