"""The rules of the Format specification that each vector shows.

A rule has an identifier in ``docs/specification.md``, ``docs/spec-reading.md`` and ``docs/spec-slips.md``. The
rules of a rendering follow from its message and its Format. Every other vector names its rules itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from untemplate._internal.conform import with_tools

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = tuple(ROOT / "docs" / name for name in ("specification.md", "spec-reading.md", "spec-slips.md"))
RULE: Final = re.compile(r"^\*\*([A-Z][0-9]+)\.\*\* ", re.MULTILINE)

OF_LAWS: Final = frozenset(("G2", "G3", "G4", "G5", "D1", "D2", "D3", "D4", "F1", "F2", "F4", "F6", "I6", "E4", "U4"))
"""Rules that concern all vectors, or none: no vector shows them by itself."""


_LEVELS: Final = {
    "slipped": (
        "draft-at-the-end", "draft-at-the-end-closed", "three-drafts", "stray-close-in-content", "stray-second-close",
        "unclosed-think-stop", "r1-repeats-the-opener", "list-in-one-pair-of-tags", "other-keys-are-arguments",
        "parameters-for-arguments", "string-holds-json", "arguments-before-the-name", "zero-arguments-left-out",
        "content-between-calls", "without-tool-call-tag", "recipient-first", "white-space-in-a-message",
    ),
    "quoted": (
        "draft-in-the-middle", "draft-then-close-then-answer", "nested-think-is-text", "reasoning-names-the-marker",
        "content-names-the-marker", "close-tag-in-a-json-string", "close-in-string", "turn-end-in-the-middle",
        "name-in-prose", "names-the-marker", "named-channel-in-text", "bare-not-at-the-start", "not-at-the-start",
        "think-in-user-text-means-nothing",
    ),
}  # fmt: skip
"""Records of the corpus that are no clean outputs, although their calls are whole."""

_CORPUS: Final = {
    "M1": ("nbsp-is-text", "vertical-tab-is-text", "wide-space-is-text", "nbsp-in-value"),
    "M2": ("ws-inside-call", "crlf-around-call", "no-newlines", "newlines-between", "white-space-inside"),
    "M3": ("ws-before-call", "ws-before-think", "think-trims-its-edges", "between-calls", "white-space-in-a-message"),
    "M4": ("resumed-content-keeps-its-space", "ws-after-last-call", "text-after-section", "content-between-calls"),
    "M5": ("list-in-one-pair-of-tags",),
    "M6": ("turn-end-in-the-middle", "named-channel-in-text", "content-names-the-marker"),
    "M7": ("plain-byte-for-byte", "only-white-space", "empty", "cut-in-opener", "prompt-then-plain"),
    "M8": ("turn-end-at-the-end", "turn-end-in-the-middle", "turn-end"),
    "G1": ("empty",),
    "S1": ("r1-open-from-the-start", "forced-open-straight-to-a-call", "prompt-then-plain"),
    "S2": ("think-in-user-text-means-nothing", "prompt-then-plain", "two-in-a-section"),
    "S3": ("think-closed-in-prompt", "think-open-in-prompt", "two-in-a-section"),
    "S5": ("recipient-first", "analysis-then-final"),
    "R1": ("ws-before-think", "think", "think-then-call", "think-and-call", "think-goes-straight-to-a-call"),
    "R2": ("nested-think-is-text", "think-trims-its-edges"),
    "R3": ("nested-think-is-text", "r1-repeats-the-opener"),
    "R4": ("unclosed-think-stop", "unclosed-think-length"),
    "R5": ("second-think-opens-again", "thought-repeats"),
    "R6": ("second-think-opens-again", "thought-repeats"),
    "R7": ("stray-close-in-content", "stray-second-close"),
    "R10": ("empty-think",),
    "C1": ("response", "unwrapped", "all-three"),
    "T1": ("ws-inside-call", "white-space", "white-space-inside"),
    "T2": ("sectioned-json", "sectioned", "list-in-one-pair-of-tags", "python-tag"),
    "T3": ("without-tool-call-tag",),
    "T4": ("list-in-one-pair-of-tags", "two-in-a-section", "list", "bare-second", "two", "two-calls"),
    "T5": ("list-with-id", "list"),
    "T6": ("cut-behind-the-name", "cut-in-name"),
    "T7": ("content-names-the-marker", "name-in-prose", "names-the-marker"),
    "T8": ("broken-json-then-a-good-call",),
    "T9": ("no-tools-no-calls", "no-tools"),
    "T10": (
        "bare", "bare-not-at-the-start", "bare-not-offered", "bare-other-json", "not-at-the-start", "not-offered",
        "a-list-is-text",
    ),
    "T11": ("zero-arguments-empty", "zero-arguments-left-out", "zero-arguments", "zero-parameters"),
    "T12": ("content-between-calls", "text-after-section"),
    "T14": ("dotted-name",),
    "T15": (
        "draft-at-the-end", "draft-at-the-end-closed", "draft-in-the-middle", "draft-then-close-then-answer",
        "three-drafts", "reasoning-names-the-marker", "forced-open-straight-to-a-call",
    ),
    "J1": ("arguments-before-the-name", "parameters-for-arguments", "one-member-object"),
    "J3": ("one-member-object",),
    "J4": ("list-with-id", "all-three"),
    "J5": ("other-keys-are-arguments",),
    "J6": ("bare-other-json",),
    "N1": ("named", "fenced", "close-in-string"),
    "N2": ("dotted-name",),
    "N3": ("no-newlines", "zero-arguments"),
    "N4": ("with-id",),
    "A1": ("arguments-as-written", "close-tag-in-a-json-string", "close-in-string", "unicode-arguments", "fenced"),
    "A2": ("string-holds-json", "prose-argument-string"),
    "A4": ("broken-json-then-a-good-call", "broken-then-good"),
    "X1": ("types-by-schema", "one-newline-a-side"),
    "X2": ("dsml-types",),
    "X3": ("no-newlines", "newlines-between", "nbsp-in-value"),
    "X4": (
        "one-newline-a-side", "two-newlines-a-side", "crlf-value", "empty-value", "newlines-are-the-values",
        "dsml-white-space-kept",
    ),
    "X5": ("close-tag-inside-a-value", "close-tag-in-value"),
    "X6": ("markup-in-value", "other-tags-inside-a-value", "quotes-and-backslashes"),
    "X7": ("types-by-schema", "no-schema-stays-text"),
    "V1": ("ref", "union-number", "enum-number", "const-number", "optional-boolean"),
    "V2": ("string-that-looks-like-a-number", "no-schema-stays-text"),
    "V3": ("enum-text",),
    "V4": ("union-number", "union-text", "not-a-number", "nullable-text"),
    "V5": ("python-words", "nullable-null", "types-by-schema"),
    "V7": ("types-by-schema", "ref"),
    "L1": ("strings-and-numbers", "white-space", "sectioned"),
    "L2": ("white-space",),
    "L3": ("escapes", "brackets-in-a-string", "triple-space-values", "backslash", "quotes"),
    "L4": ("nested",),
    "L5": ("nested", "strings-and-numbers"),
    "H1": ("recipient-first", "call"),
    "H3": ("call", "two-calls"),
    "H4": ("analysis-then-final", "preamble"),
    "H5": ("call", "cut-call"),
    "H6": ("several-finals", "two-analyses"),
    "H7": ("several-finals", "white-space-in-a-message"),
    "K1": ("unclosed-think-length", "cut-in-opener"),
    "K2": ("cut-in-arguments", "cut-call", "cut", "cut-in-a-value", "cut-after-one"),
    "K3": ("cut-in-name", "cut-behind-the-name"),
    "K5": ("length-keeps-length",),
    "K6": ("cut-in-a-value", "cut", "cut-between-values"),
    "U1": ("unknown-tool", "wrong-arguments", "not-a-number"),
    "U2": ("string-holds-json", "parameters-for-arguments"),
    "U3": ("broken-json-then-a-good-call", "broken-then-good"),
    "P6": ("broken-json-then-a-good-call", "broken-then-good"),
    "P7": ("prose-argument-string",),
    "P11": ("close-tag-inside-a-value", "close-tag-in-value", "other-tags-inside-a-value"),
}  # fmt: skip
"""Rules, and the records of the corpus that show them."""

_OF_MESSAGES: Final = {
    "no-arguments": ("T11",),
    "types": ("V4", "V5"),
    "false-and-zero": ("V4", "V5"),
    "like-other-types": ("V2",),
    "nested": ("V7",),
    "content": ("M7",),
    "content-with-code": ("M7",),
    "unicode": ("M7",),
    "lists-in-content": ("M7",),
    "json-in-content": ("M7",),
}
_CONVERTED: Final = ("V1", "V2", "V3", "V4", "V5", "V6", "V7")


def identifiers() -> list[str]:
    """Return the identifiers of all rules, in the order of the pages."""
    return [found for page in PAGES for found in RULE.findall(page.read_text("utf-8"))]


def of_corpus(record: str) -> list[str]:
    """Return the rules that a record of the corpus shows."""
    return ordered(rule for rule, records in _CORPUS.items() if record in records)


def level_of_corpus(record: str, default: str) -> str:
    """Return the level of a record of the corpus. ``default``: the one that its message suggests."""
    return next((level for level, records in _LEVELS.items() if record in records), default)


def of_rendering(kind: str, expect: dict[str, Any], form: dict[str, Any]) -> list[str]:
    """Return the rules that a rendering shows. ``form``: the JSON form of its Format."""
    rules = set(_OF_MESSAGES.get(kind, ()))
    if expect["reasoning"]:
        rules |= {"R1", "R2"}
    if expect["content"] and "content" in form:
        rules.add("C1")
    if expect["content"] and expect["tool_calls"]:
        rules.add("M3")
    if expect["reasoning"] and form.get("reasoning", {}).get("inline"):
        rules.add("R9")
    if "channels" in form:
        rules |= {"H2"} if not {"recipient", "channel"} & set(form["channels"]) else set()
        rules |= {"H1", "H4"} | ({"H3", "H5"} if expect["tool_calls"] else set())
    elif expect["tool_calls"]:
        rules |= set(_of_frame(form["tools"][0], len(expect["tool_calls"])))
    converted = "tools" in form and form["tools"][0].get("body", {}).get("arguments", {}).get("kind", "json") != "json"
    rules -= set() if converted and expect["tool_calls"] else set(_CONVERTED)
    return ordered(rules or {"M7"})


def _of_frame(tools: dict[str, Any], calls: int) -> Iterator[str]:
    body = tools.get("body", {"kind": "json"})
    marked = "section_open" in tools or "call_open" in tools
    yield "T2" if marked else "T10"
    if calls > 1:
        yield "T4"
    if body.get("kind", "json") == "json":
        yield from ("J1", "A1")
        if "nested_key" in body:
            yield "J2"
        if body.get("name_is_key"):
            yield "J3"
        return
    yield "N1"
    if body.get("name", "{name}") != "{name}":
        yield "N2"
    arguments = body.get("arguments", {"kind": "json"})
    yield from {
        "json": ("A1",),
        "tagged": ("X1", "X3", "X7"),
        "element": ("E1", "E2", "E3"),
        "literal": ("L1", "L3"),
    }[arguments.get("kind", "json")]
    if arguments.get("trim"):
        yield "X4"
    if body.get("escape") == "xml":
        yield "N6"
    if "type_open" in arguments:
        yield "X9"
    if arguments.get("escape") in ("xml", "cdata"):
        yield "X8"
    if arguments.get("quoted", "strings") != "strings":
        yield "L6"


def ordered(rules: Iterable[str]) -> list[str]:
    """Return rules, each once, by letter and number."""
    return sorted(set(rules), key=lambda rule: (rule[0], int(rule[1:])))


def shown(vectors: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the ids of the vectors that show each rule."""
    found: dict[str, list[str]] = {rule: [] for rule in identifiers()}
    for vector in vectors:
        for rule in vector["rules"]:
            found[rule].append(vector["id"])
    return found


def with_vectors(page: str, found: dict[str, list[str]]) -> str:
    """Return a page of the specification with the vectors below each rule that has some."""
    plain = re.sub(r"\n\n\*Shown by [^\n]*\*\n", "\n", page)
    parts = re.split(r"(?m)^(?=\*\*[A-Z][0-9]+\.\*\* |## )", plain)
    for i, part in enumerate(parts):
        rule = RULE.match(part)
        if rule is not None and found[rule[1]]:
            parts[i] = f"{part.rstrip()}\n\n{_listed(found[rule[1]])}\n" + ("\n" if i + 1 < len(parts) else "")
    return "".join(parts)


def with_table(page: str, found: dict[str, list[str]]) -> str:
    """Return the first page of the specification with the number of vectors of each rule."""
    letters: dict[str, list[str]] = {}
    for rule, ids in found.items():
        letters.setdefault(rule[0], []).append(f"{rule} {len(ids):,}" if ids else rule)
    rows = [f"| {letter} | {', '.join(rules)} |" for letter, rules in letters.items()]
    table = "\n".join(["| letter | rules |", "| --- | --- |", *rows])
    return re.sub(r"(?s)(<!-- rules -->\n).*(<!-- end -->)", rf"\1\n{table}\n\n\2", page)


def _listed(ids: list[str]) -> str:
    """Return the line below a rule: at most four vectors of different names, those of well-known formats first."""
    names: dict[str, str] = {}
    known = ("hermes", "qwen3_coder", "mistral", "deepseek_v31", "kimi_k2", "gpt-oss")
    for one in sorted(ids, key=lambda one: ("/corpus." not in one, one.partition("/")[0] not in known, one)):
        names.setdefault(one.partition("/")[2], one)
    chosen = list(names.values())[:4]
    more = f", and {len(ids) - len(chosen):,} more" if len(ids) > len(chosen) else ""
    return f"*Shown by {', '.join(f'`{one}`' for one in chosen)}{more}.*"


def load(folder: Path) -> list[dict[str, Any]]:
    """Return the vectors of a folder, with their tools."""
    lines = (folder / "vectors.jsonl").read_text("utf-8").rstrip("\n").split("\n")
    return with_tools(map(json.loads, lines), json.loads((folder / "tools.json").read_text("utf-8")))
