"""The catalogue: formats by the names that people already use.

Rules of this module:

* The registry is keyed by (kind, name); aliases are names. ``granite`` is both a reasoning and a tool parser.
* Nothing is loaded before it is asked for. ``FAMILIES`` says which module holds which name; a test keeps it in step.
* A family is one module of data that defines ``ENTRIES``, and one line in ``FAMILIES``.
* Two names merge into one Format, parsed in one pass; what cannot be merged says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Final, Literal

from ..errors import IncompatibleFormatsError, UnknownFormatError
from ..format import Format, FormatError, Marker, Turn

__all__ = [
    "FAMILIES",
    "Entry",
    "IncompatibleFormatsError",
    "Kind",
    "UnknownFormatError",
    "entries",
    "lookup",
    "merge",
    "named",
    "names",
]

Kind = Literal["reasoning", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of the catalogue, and what it rests on."""

    name: str
    kind: Kind
    format: Format
    aliases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """Models that write this, by hub id or family name."""
    engines: tuple[str, ...] = ()
    """Engines that document this name or one of its aliases."""
    evidence: tuple[str, ...]
    """``template: <file>``, ``case``, or a cited source with its date."""
    verified: bool = True
    """False: the name is known, but nothing firm says what its models write."""


# -- Where names live ---------------------------------------------------------------------------------------------

# module: (names of reasoning entries, names of tool entries), aliases included.
FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "apertus": ("apertus apertus2509", "apertus apertus2509"),
    "apriel": ("apriel_1.5 apriel_1.6", "apriel_1.5 apriel_1.6"),
    "cohere": (
        "cohere_command3 command_r7b cohere_command4",
        "cohere_command3 command_r7b cohere_command4 command_r_plus",
    ),
    "deepseek": (
        "deepseek_r1 deepseek-r1 deepseek_v3 deepseek-v3 deepseek_v31 deepseek-v31 deepseek_v32 "
        "deepseek_v4 deepseek-v4 deepseek_v41",
        "deepseek_v3 deepseekv3 deepseek deepseek_v31 deepseekv31 deepseek_v3_1 deepseek_v32 deepseekv32 "
        "deepseek_v3_2 deepseek_v4 deepseekv4 deepseek-v4 deepseek_v41 deepseekv41",
    ),
    "dots": ("", "dots"),
    "ernie": ("ernie45", "ernie45"),
    "firefunction": ("", "firefunction_v2"),
    "functionary": ("", "functionary_v3.1 functionary_v31 functionary_v3.2 functionary_v32"),
    "functiongemma": ("", "functiongemma"),
    "gemma4": ("gemma4", "gemma4"),
    "gigachat": ("", "gigachat3"),
    "glm": ("glm45 glm47 ling3 poolside_v1", "glm45 glm glm45_moe glm47 glm47_moe ling3 poolside_v1"),
    "gpt_oss": ("gpt-oss openai_gptoss gptoss gpt_oss", "gpt-oss openai openai_gptoss gptoss gpt_oss harmony"),
    "granite": ("granite granite33 granite_thinking_parser", "granite granite4 granite-20b-fc granite_thinking_parser"),
    "hermes": ("", "hermes qwen qwen25 qwen3_json trinity smollm3"),
    "holo": ("holo2", ""),
    "hunyuan": ("hunyuan_a13b hunyuan hy_v3 hy_v4", "hunyuan_a13b hunyuan hy_v3 hy_v4"),
    "inkling": ("inkling", "inkling"),
    "internlm": ("", "internlm internlm2 interns1"),
    "jamba": ("", "jamba"),
    "kimi": ("kimi_k2 kimi_k25 kimi kimi_k3", "kimi_k2 kimik2 kimi_k3"),
    "lfm2": ("", "lfm2"),
    "llama": ("", "llama3_json llama3 llama llama4_pythonic llama4_json"),
    "longcat": ("", "longcat"),
    "mimo": ("mimo", "mimo"),
    "minicpm": ("minicpmv", "minicpm5"),
    "minimax": (
        "minimax_m2 minimax minimax_m2_append_think minimax-append-think minimax_m3 minimax-m3",
        "minimax_m2 minimax-m2 minimax minimax_m3 minimax-m3",
    ),
    "mistral": ("mistral", "mistral mistral_v3"),
    "muse": ("muse muse_glimmer", "muse muse_glimmer"),
    "nemotron": ("nemotron_nano_v2 nemotron_v3 nemotron_3", "nemotron_nano_v2 nemotron_deci nemotron_v3 nemotron_3"),
    "olmo": ("olmo3", "olmo3"),
    "phi": ("", "phi4_mini_json phi4"),
    "plain": ("identity passthrough", "passthrough json"),
    "plamo": ("plamo3", "plamo3"),
    "pythonic": ("", "pythonic gemma3"),
    "qwen3": ("qwen3 interns1 qwen3-thinking", ""),
    "qwen3_coder": ("", "qwen3_coder qwen3_xml qwen_coder nemotron_nano"),
    "seed_oss": ("seed_oss", "seed_oss"),
    "step": ("step3 step3p5 step5", "step3 step3p5 step5"),
    "xlam": ("", "xlam"),
}


@cache
def _modules(kind: Kind) -> dict[str, str]:
    """Name → module of one kind, in the order of ``FAMILIES``."""
    column = 0 if kind == "reasoning" else 1
    return {name: module for module, listed in FAMILIES.items() for name in listed[column].split()}


@cache
def _load(module: str) -> dict[tuple[Kind, str], Entry]:
    """The entries of one module by kind and name, aliases included."""
    found: tuple[Entry, ...] = import_module(f".{module}", __package__).ENTRIES
    return {(entry.kind, name): entry for entry in found for name in (entry.name, *entry.aliases)}


def names(kind: Kind | None = None) -> list[str]:
    """All valid names of one kind (``None``: of both), aliases included, sorted. Loads no family."""
    kinds: tuple[Kind, ...] = ("reasoning", "tool") if kind is None else (kind,)
    return sorted({name for k in kinds for name in _modules(k)})


def entries() -> list[Entry]:
    """Every entry, sorted by name, reasoning before tools. Loads every family."""
    found = [entry for module in FAMILIES for entry in dict.fromkeys(_load(module).values())]
    return sorted(found, key=lambda entry: (entry.name, entry.kind))


def lookup(kind: Kind, name: str) -> Entry:
    """The entry of that kind with that name or alias.

    Raises:
        UnknownFormatError: names the nearest and all valid ones.
    """
    module = _modules(kind).get(name)
    if module is None:
        raise UnknownFormatError(name, kind, names(kind))
    return _load(module)[kind, name]


def named(name: str, *, reasoning: str | None = None) -> Format:
    """The Format behind a name: the tool entry, the reasoning entry, or both together where both have that name.

    Args:
        name: a tool name, a reasoning name, or an alias of either.
        reasoning: a reasoning name to go with the tools instead (``identity``: none at all).

    Raises:
        UnknownFormatError: names the nearest and all valid ones.
        IncompatibleFormatsError: the two cannot be one Format.
    """
    has_tool, has_reasoning = name in _modules("tool"), name in _modules("reasoning")
    if not has_tool and not has_reasoning:
        raise UnknownFormatError(name, None, names())
    if reasoning is not None:
        chosen = lookup("reasoning", reasoning).format
        if has_tool:
            return merge(chosen, lookup("tool", name).format)
        if lookup("reasoning", name).format == chosen:
            return chosen
        raise IncompatibleFormatsError(reasoning, name, f"{name!r} is a reasoning format as well")
    if not has_tool:
        return lookup("reasoning", name).format
    tools = lookup("tool", name).format
    if not has_reasoning:
        return tools
    return replace(merge(lookup("reasoning", name).format, tools), name=tools.name)


# -- Two into one -------------------------------------------------------------------------------------------------


def merge(reasoning: Format, tools: Format) -> Format:
    """One Format with the reasoning of the first and the tools and ids of the second. Content markers come from the
    first, else from the second; turn markers and special tokens from both, the tools' own spellings first.

    Raises:
        IncompatibleFormatsError: message channels on one side only, or one literal with two meanings.
    """
    if reasoning.channels != tools.channels:
        return _merge_channels(reasoning, tools)
    if _says_nothing(reasoning) and reasoning.turn == Turn():
        return tools
    name = tools.name if _says_nothing(reasoning) or reasoning.name == tools.name else f"{reasoning.name}+{tools.name}"
    try:
        return replace(
            tools,
            name=name,
            turn=Turn(
                start=_united(tools.turn.start, reasoning.turn.start),
                end=_united(tools.turn.end, reasoning.turn.end, without=set(_markers(reasoning, tools))),
            ),
            reasoning=reasoning.reasoning,
            content=reasoning.content or tools.content,
            special_tokens=tuple(dict.fromkeys((*tools.special_tokens, *reasoning.special_tokens))),
        )
    except FormatError as error:
        raise IncompatibleFormatsError(reasoning.name, tools.name, str(error)) from error


def _merge_channels(reasoning: Format, tools: Format) -> Format:
    """One side has channels, which carry reasoning, content and calls alike: the other side may only be empty."""
    if tools.channels is None and _says_nothing(tools):
        return reasoning
    if reasoning.channels is None and _says_nothing(reasoning):
        return tools
    holder = reasoning if reasoning.channels is not None else tools
    problem = (
        f"{holder.name!r} writes a turn as messages in channels, which carry reasoning, content and calls together"
    )
    raise IncompatibleFormatsError(reasoning.name, tools.name, problem)


def _says_nothing(fmt: Format) -> bool:
    return fmt.reasoning is None and fmt.content is None and not fmt.tools and fmt.channels is None


def _united(first: Marker | None, second: Marker | None, without: Iterable[str] = ()) -> Marker | None:
    """The first marker, which accepts the spellings of the second as well. Spellings in ``without`` are left out."""
    kept: dict[str, str] = {}
    for marker in (first, second):
        for text in () if marker is None else (marker.text, *marker.accepted):
            bare = text.strip() or text
            if bare not in without:
                kept.setdefault(bare, text)
    if not kept:
        return None
    canonical, *accepted = kept
    return Marker(kept[canonical], tuple(accepted))


def _markers(reasoning: Format, tools: Format) -> Iterator[str]:
    """Spellings that must not end a turn, because they open or close something else."""
    for part in (reasoning.reasoning, reasoning.content or tools.content, *tools.tools):
        for field in ("open", "close", "section_open", "call_open"):
            marker = getattr(part, field, None)
            if marker is not None:
                yield from marker.spellings
