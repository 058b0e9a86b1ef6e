"""The class `ChatTemplate`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from .._internal.tokens.decoding import Vocabulary, added_tokens
from ..errors import TemplateError, TemplateLimitError
from ._inputs import REASONING_FIELDS, Inputs
from ._limits import MAX_SOURCE

if TYPE_CHECKING:
    from ._branches import Branch
    from ._sandbox import CompiledTemplate

__all__ = ["ChatTemplate"]

_CACHE_SIZE: Final = 256
"""Number of compiled templates that are kept."""
_TAG: Final = "CONTINUE_FINAL_MESSAGE_TAG "
"""Hugging Face's mark at the end of a message to be continued."""


class ChatTemplate:
    """A model's chat template.

    Args:
        source: the template.
        bos_token, eos_token: tokens that the template can use under these names.
        name: name of the template in errors.
        named: further templates of the same model. ``tool_use`` is used if tools are given, others through
            :meth:`variant`.
        special_tokens: further tokens that the template can use (``pad_token`` …).
        added_tokens: the tokens that the model's tokenizer has as one token each, special ones and others. No rendering
            depends on them.
        end_token: the token that ends an output, if the tokenizer names no ``eos_token``. No rendering depends on it.
        now: the time for ``strftime_now``, or a function that returns it. Default: the local time.

    Raises:
        TemplateLimitError: the template is too long.
        TypeError: ``source`` is not a string.
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
        added_tokens: Iterable[str] = (),
        end_token: str = "",
        now: datetime | Callable[[], datetime] | None = None,
    ) -> None:
        self.source = source
        self.added_tokens: frozenset[str] = frozenset(added_tokens)
        self.end_token = end_token
        self.name = name
        self.named: Mapping[str, str] = dict(named or {})
        self.special_tokens: Mapping[str, str] = {
            **(special_tokens or {}), "bos_token": bos_token, "eos_token": eos_token
        }  # fmt: skip
        self.now = now
        self._ran: dict[str, bytearray] | None = None
        for one in (source, *self.named.values()):
            if not isinstance(one, str):
                raise TypeError(f"a template is a str, not {type(one).__name__}")
            if len(one) > MAX_SOURCE:
                problem = f"the template is too long: {len(one)} characters, at most {MAX_SOURCE}"
                raise TemplateLimitError(problem, name=name)

    @classmethod
    def load(cls, source: str | PathLike[str], *, now: datetime | Callable[[], datetime] | None = None) -> ChatTemplate:
        """Load the template of a model.

        Args:
            source: the template itself, a ``.jinja`` file, a ``tokenizer_config.json`` or ``chat_template.json``, a
                model's folder, a GGUF file, or a hub id (needs ``huggingface_hub``).
            now: as in the constructor.

        Raises:
            TemplateError: there is no template, it cannot be read or downloaded, or a package is missing.
        """
        from ._sources import read

        found = read(source)
        return cls(
            found.source,
            bos_token=found.tokens.special.get("bos_token", ""),
            eos_token=found.tokens.special.get("eos_token", ""),
            name=found.name,
            named=found.named,
            special_tokens=found.tokens.special,
            added_tokens=found.tokens.added.values(),
            end_token=found.tokens.end,
            now=now,
        )

    @classmethod
    def of_tokenizer(cls, tokenizer: Any, *, name: str | None = None) -> ChatTemplate | None:
        """Return the template of a loaded tokenizer (attribute ``chat_template``); ``None`` if it has none.

        Raises:
            TemplateError: the template is too long.
        """
        source = getattr(tokenizer, "chat_template", None)
        named: Mapping[str, str] = {}
        if isinstance(source, Mapping):
            named, source = source, source.get("default")
        if not isinstance(source, str):
            return None
        bos, eos = (str(getattr(tokenizer, token, None) or "") for token in ("bos_token", "eos_token"))
        added = Vocabulary({}, *added_tokens(tokenizer)).added
        return cls(source, bos_token=bos, eos_token=eos, name=name, named=named, added_tokens=added)

    @property
    def bos_token(self) -> str:
        return self.special_tokens["bos_token"]

    @property
    def eos_token(self) -> str:
        return self.special_tokens["eos_token"]

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that decides the output and its analysis, except the inputs and the time."""
        digest = sha256()
        end = [("", self.end_token)] if self.end_token else []
        for key, value in (("", self.source), *sorted(self.named.items()), *sorted(self.special_tokens.items()), *end):
            for part in (key, value):
                data = part.encode("utf-8", "surrogatepass")
                digest.update(b"%d:" % len(data) + data)
        return digest.hexdigest()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens of the model that are known: the added ones, without their ids."""
        return Vocabulary(dict.fromkeys(sorted(self.added_tokens), 0), added=self.added_tokens)

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The strings and texts in the template's source, in order, each once."""
        return tuple(dict.fromkeys(text for source in self._sources for text in self._compile(source).literals))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the template expects, sorted: ``messages``, ``tools``, ``enable_thinking`` …"""
        return tuple(sorted({name for source in self._sources for name in self._compile(source).variables}))

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """The constant strings that variables are compared with (``reasoning_effort``: ``low``, ``high``)."""
        return self._compile(self.source).choices

    @property
    def fields(self) -> frozenset[str]:
        """Attributes and keys that the template reads: of messages, of tools, and methods (``content``, ``items``)."""
        return self._compile(self.source).fields

    @cached_property
    def lines(self) -> Mapping[str, int]:
        """First line in the source of each literal (also without outer white space), name and attribute."""
        return self._compile(self.source).lines

    def ending(self, token: str) -> ChatTemplate:
        """Return this template with the token that ends an output, if it knows none itself."""
        if self.eos_token or self.end_token or not token:
            return self
        template = copy(self)
        template.end_token = token
        template.__dict__.pop("sha256", None)
        return template

    @property
    def _sources(self) -> list[str]:
        return [self.source, *(text for name, text in self.named.items() if name == "tool_use")]

    def variant(self, name: str) -> ChatTemplate:
        """Return one of the named templates (``rag``, ``tool_use`` …) as a template of its own.

        Raises:
            TemplateError: no template has that name; the message lists the names.
        """
        if name not in self.named:
            names = ", ".join(sorted(self.named)) or "none"
            raise TemplateError(f"no template is named {name!r}; its templates are: {names}", name=self.name)
        return ChatTemplate(
            self.named[name],
            bos_token=self.bos_token,
            eos_token=self.eos_token,
            name=f"{self.name or 'template'}[{name}]",
            special_tokens=self.special_tokens,
            added_tokens=self.added_tokens,
            end_token=self.end_token,
            now=self.now,
        )

    def observed(self) -> ChatTemplate:
        """Return this template as one that notes which of its branches run (`unreached`)."""
        template = copy(self)
        template._ran = {}
        return template

    @property
    def branches(self) -> list[Branch]:
        """The bodies of ``if``, ``for`` and macros, and the sides of conditional expressions."""
        return [branch for source in self._sources for branch in self._compile(source).branches]

    def unreached(self) -> list[Branch]:
        """Return the branches that no rendering of an observed template has run, by line.

        Raises:
            RuntimeError: the template is not observed.
        """
        if self._ran is None:
            raise RuntimeError("unreached() needs a template that observed() has returned")
        found = [branch for source in self._sources for branch in self._unreached_in(source, self._ran)]
        return sorted(found, key=lambda branch: branch.line)

    def unreached_lines(self) -> list[int]:
        """Return the lines of ``source`` with a branch that no rendering of an observed template has run.

        Raises:
            RuntimeError: the template is not observed.
        """
        if self._ran is None:
            raise RuntimeError("unreached_lines() needs a template that observed() has returned")
        return sorted({line for branch in self._unreached_in(self.source, self._ran) for line in branch.lines})

    def _unreached_in(self, source: str, ran: dict[str, bytearray]) -> list[Branch]:
        branches = self._compile(source).branches
        once = ran.get(source, bytes(len(branches)))
        return [branch for branch, seen in zip(branches, once, strict=True) if not seen]

    def compile(self) -> None:
        """Compile the template, unless it is compiled already.

        Raises:
            TemplateError: the source is not a valid template.
        """
        for source in self._sources:
            self._compile(source)

    def render(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        mark_generation: bool = False,
        neutralize: Collection[str] = (),
        **kwargs: Any,
    ) -> str:
        """Return the prompt, as ``apply_chat_template(…, tokenize=False)`` does.

        Args:
            messages, tools, documents: dicts or models; tools are schemas. The template sees copies, in which reasoning
                is in both ``reasoning_content`` and ``thinking``.
            add_generation_prompt: append the header of the assistant's turn.
            continue_final_message: end the prompt inside the final message, so that the model continues its ``content``
                or the field of this name (``reasoning_content``).
            mark_generation: put the text inside ``{% generation %}`` between two private characters, which
                `generation_ranges` reads.
            neutralize: markers to break in the content of users and tools (`OutputParser.prompt_markers`), so that the
                content cannot end its own message. An invisible character is put into each.
            kwargs: variables of the template (``enable_thinking``, ``reasoning_effort`` …).

        Raises:
            TemplateError: the template cannot render this. Subclasses are `TemplateRaised` and `TemplateLimitError`.
            ValueError: arguments that exclude each other.
            TypeError: messages, tools or documents are neither dicts nor models.
        """
        if continue_final_message and add_generation_prompt:
            raise ValueError("continue_final_message and add_generation_prompt exclude each other")
        source = self.named["tool_use"] if tools is not None and "tool_use" in self.named else self.source
        inputs = Inputs()
        try:
            chat = inputs.messages(_neutralized(messages, neutralize) if neutralize else messages)
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
        compiled = self._compile(source)
        try:
            ran = None if self._ran is None else self._ran.setdefault(source, bytearray(len(compiled.branches)))
            text = compiled.run(variables, inputs, self._clock, mark_generation, ran)
        except TemplateError as error:
            error.name = error.name or self.name
            raise
        return _cut(text, marked, self.name) if continue_final_message else text

    def _clock(self) -> datetime:
        if isinstance(self.now, datetime):
            return self.now
        return datetime.now() if self.now is None else self.now()

    def _compile(self, source: str) -> CompiledTemplate:
        try:
            return _compiled(source)
        except TemplateError as error:
            error.name = error.name or self.name
            raise

    def __repr__(self) -> str:
        return f"ChatTemplate({self.name or self.sha256[:12]!r}, {len(self.source)} characters)"


# -- Compiled templates, by source --------------------------------------------------------------------------------


@lru_cache(_CACHE_SIZE)
def _compiled(source: str) -> CompiledTemplate:
    from ._sandbox import compile_source

    return compile_source(source)


def _neutralized(messages: Sequence[Any], markers: Collection[str]) -> list[dict[str, Any]]:
    from ._message_markers import TOOL_ROLES, MessageMarkers

    if isinstance(markers, str):
        raise TypeError("neutralize: expected a collection of markers, got str")
    return MessageMarkers(markers).neutralized(Inputs().dicts("messages", messages), ("user", *TOOL_ROLES))


# -- The final message, continued ---------------------------------------------------------------------------------


def _mark(chat: list[Any], field: bool | str, source: str) -> str:
    """Append the tag to the final message. Return the text before it."""
    if not chat:
        raise TemplateError("continue_final_message: there is no message to continue")
    final = chat[-1]
    key = field if isinstance(field, str) else "content"
    keys = [key]
    if key in REASONING_FIELDS:  # the copies have the other names, and the template reads one of them
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
    """Return the rendered chat up to the tag."""
    tag = text.rfind(_TAG.strip())
    if tag < 0 or marked.strip() not in text:
        raise TemplateError("continue_final_message: the template does not write the final message", name=name)
    return text[:tag] if text.startswith(_TAG, tag) else text[:tag].rstrip()
