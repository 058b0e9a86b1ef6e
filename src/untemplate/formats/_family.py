"""The parts that every family module is made of: its entries, their evidence, and the assistant's turn.

A family module holds data only. It defines ``ENTRIES``, and ``docs/generate_index.py`` copies from them into
``_index.py`` what lookup and selection need, so that a name can be found without importing its family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from .._internal.record import Record, record
from ..errors import FormatError
from ..format import Format, Marker, Turn
from ._index import HEADERS

__all__ = [
    "EVIDENCE_KINDS",
    "TURN_ENDS",
    "Engine",
    "Entry",
    "Evidence",
    "EvidenceKind",
    "IndexRow",
    "Kind",
    "report",
    "sglang",
    "template",
    "turn",
    "vllm",
]

Kind = Literal["reasoning", "tool"]
"""The part of an output that an entry describes."""

Engine = Literal["vllm", "sglang", "llama.cpp", "vllm.rs", "dynamo", "ollama", "tensorrt-llm"]
"""An inference engine that documents a name of the catalogue."""

EvidenceKind = Literal["template", "engine", "report"]
"""``template``: a chat template. ``engine``: an inference engine's source or manual.
``report``: an issue or a file that shows an output."""

EVIDENCE_KINDS: Final[tuple[EvidenceKind, ...]] = ("template", "engine", "report")
"""Kinds of evidence, the firmest first."""


@record(kw_only=False)
class Evidence(Record):
    """A public source that an entry rests on.

    >>> print(vllm("vllm/parser/mimo.py", "values are verbatim"))
    engine: vllm-project/vllm vllm/parser/mimo.py (2026-11-22): values are verbatim
    """

    kind: EvidenceKind
    source: str
    """Repository and file, or issue, on GitHub or Hugging Face: ``owner/name path`` or ``owner/name#number``."""
    date: str = "2026-11-22"
    """Day on which the source was looked up."""
    note: str = ""
    """The fact in the source that matters here. Default: none is singled out."""

    def __post_init__(self) -> None:
        """Raise FormatError if the kind is not one."""
        if self.kind not in EVIDENCE_KINDS:
            expected = f"one of {_listed(EVIDENCE_KINDS)}"
            raise FormatError(f"Evidence {self.source!r}: kind", f"expected {expected}, got {self.kind!r:.200}")

    def __str__(self) -> str:
        return f"{self.kind}: {self.source} ({self.date})" + (f": {self.note}" if self.note else "")


@record()
class Entry(Record):
    """One name of the catalogue: a Format, the models that write it, and the evidence for both."""

    name: str
    """Canonical name; ``format`` has the same one. Example: ``"hermes"``."""
    kind: Kind
    """``"reasoning"`` or ``"tool"``. One name may have an entry of each kind, since engines name the two separately."""
    format: Format
    """Format of the reasoning only, or of the tool calls only, unless channels carry both."""
    aliases: tuple[str, ...] = ()
    """Other names that find this entry. Example: ``("qwen", "qwen25")``. Default: none."""
    models: tuple[str, ...] = ()
    """Patterns of hub ids whose models write this format. Example: ``("Qwen/Qwen2.5-*",)``. Default: none."""
    model_types: tuple[str, ...] = ()
    """Values of ``model_type`` in ``config.json`` that suggest this entry. A type equal to a name or an alias (case and
    punctuation aside) suggests it without being listed. Example: ``("qwen2", "qwen3_moe")``. Default: none."""
    architectures: tuple[tuple[str, str], ...] = ()
    """GGUF's ``general.architecture`` and the model type for it, where the two differ. Example:
    ``(("qwen3moe", "qwen3_moe"),)``. Default: none."""
    headers: tuple[str, ...] = ()
    """Turn headers: text at the end of a prompt after which the assistant's output begins. `turn` puts the headers of
    all entries into the `Turn.start` of every entry. Example: ``("<|im_start|>assistant",)``. Default: none."""
    engines: tuple[Engine, ...] = ()
    """Engines that document this name or one of its aliases. Default: none."""
    evidence: tuple[Evidence, ...]
    """Public sources, the firmest first. Empty only if ``verified`` is false."""
    verified: bool = True
    """False if the name is known but the format is a guess, or describes only a part of what the models write."""

    def __post_init__(self) -> None:
        """Check what is given.

        Raises:
            FormatError: a field has a wrong value; the message names it and the valid ones.
        """
        for field, given, is_right, expected in (
            ("kind", self.kind, self.kind in get_args(Kind), f"one of {_listed(get_args(Kind))}"),
            ("format", self.format, isinstance(self.format, Format), "a Format"),
            ("architectures", self.architectures, _all(_is_pair, self.architectures), _PAIRS),
            ("evidence", self.evidence, _all(_is_evidence, self.evidence), _EVIDENCE),
            ("engines", self.engines, _all(_is_engine, self.engines), f"a tuple of these: {_listed(get_args(Engine))}"),
        ):
            if not is_right:
                raise self._wrong(field, given, expected)
        for field in ("aliases", "models", "model_types", "headers"):
            given = getattr(self, field)
            if not _all(_is_text, given):
                example = f'("{given}",)' if isinstance(given, str) else '("…",)'
                raise self._wrong(field, given, f"a tuple of texts, such as {example}")
        if self.name != self.format.name:
            raise self._wrong("name", self.name, f"{self.format.name!r}, the name of its format")

    def _wrong(self, field: str, given: object, expected: str) -> FormatError:
        return FormatError(f"Entry {self.name!r}: {field}", f"expected {expected}, got {given!r:.200}")


_PAIRS: Final = 'a tuple of pairs, such as (("qwen3moe", "qwen3_moe"),)'
_EVIDENCE: Final = 'a tuple of Evidence, such as (template("Acme.jinja"),)'


def _all(is_right: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, tuple) and all(map(is_right, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_engine(value: object) -> bool:
    return value in get_args(Engine)


def _is_evidence(value: object) -> bool:
    return isinstance(value, Evidence)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and [type(one) for one in value] == [str, str]


def _listed(valid: tuple[str, ...]) -> str:
    return ", ".join(map(repr, valid))


class IndexRow(NamedTuple):
    """The part of an `Entry` that is known without importing its family."""

    module: str
    """The family module, or the package that registered the entry."""
    kind: Kind
    name: str
    aliases: tuple[str, ...]
    models: tuple[str, ...]
    model_types: tuple[str, ...]
    verified: bool


# -- Evidence -----------------------------------------------------------------------------------------------------


def template(name: str, date: str = "2026-11-22") -> Evidence:
    """A chat template in llama.cpp's collection, ``models/templates/``: ``template("Qwen-Qwen3-0.6B.jinja")``."""
    return Evidence("template", f"ggml-org/llama.cpp models/templates/{name}", date)


def vllm(path: str, note: str = "", date: str = "2026-11-22") -> Evidence:
    """A file of vLLM: ``vllm("vllm/parser/mimo.py")``."""
    return Evidence("engine", f"vllm-project/vllm {path}", date, note)


def sglang(path: str, note: str = "", date: str = "2026-11-22") -> Evidence:
    """A file of SGLang's runtime: ``sglang("function_call/mimo_detector.py")``."""
    return Evidence("engine", f"sgl-project/sglang python/sglang/srt/{path}", date, note)


def report(issue: str, note: str = "", date: str = "2026-11-22") -> Evidence:
    """An issue or pull request on GitHub: ``report("vllm-project/vllm#46863", "Llama 4 writes JSON calls")``."""
    return Evidence("report", issue, date, note)


# -- The assistant's turn -----------------------------------------------------------------------------------------

TURN_ENDS: Final = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
)
"""End-of-turn tokens that every entry accepts. ``</s>`` is not among them: it ends ordinary HTML."""


def turn(start: str, *ends: str) -> Turn:
    """Return a turn that writes ``start`` and the first of ``ends``, and accepts those of every family.

    Entries such as ``hermes`` or ``deepseek_r1`` are used with many models. The last header in a prompt is the one of
    the generation prompt, whichever family wrote it. Accepted end tokens that a vocabulary lacks do no harm.
    """
    return Turn(
        start=Marker(start, tuple(header for header in HEADERS if header != start.strip())),
        end=Marker(ends[0], (*ends[1:], *(end for end in TURN_ENDS if end not in ends))),
    )
