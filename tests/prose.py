"""Read the prose of the project: docstrings, comments and pages, without the code in them.

Used by `test_prose.py`, and by hand: ``python -m tests.prose [PATH …]`` prints every finding with its place.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
WORDS: Final = re.compile(r"[A-Za-z][A-Za-z'’-]*")

PHRASES: Final = {
    "behind, for after": re.compile(
        r"\bbehind\b(?! (?:a|the|your|its|nginx|any) (?:\w+ )?(?:proxy|proxies|gateway|balancer|firewall))"
    ),
    "stands, for is": re.compile(r"\b(?:stands|stood|stand)\b(?! (?:for|in for|alone|out)\b)(?<!\bto stand)"),
    "is none, for is not a": re.compile(r"\b(?:is|are|was|were|be|has) none\b"),
    "tells, says, for returns, emits, reports": re.compile(r"\b(?:tells?|told|says?|said)\b"),
    "beside, for next to": re.compile(r"\bbeside\b"),
    "let go, given back, held against": re.compile(r"\b(?:lets? go|gives? back|given back|held against)\b"),
    "whoever, anybody who has": re.compile(r"\b(?:whoever|(?:to|for|by) who\b|he who)\b"),
    "goes by, goes on, comes whole": re.compile(r"\b(?:goes? by|goes? on|comes? (?:back )?whole)\b"),
    "all the same, of its own making": re.compile(r"\b(?:all the same|of its own making|as it pleases)\b"),
}
"""Phrases that read as translated. A single one may be right; many of them are a dialect."""

NOUN_OPENER: Final = re.compile(r"\s*(?:What|Whether|Who|Whose|How many|Where)\b")
"""Begins a docstring that is a relative clause, where a verb or a noun phrase is expected."""

DANGLING: Final = re.compile(r"\b[Ss]pecs? \d|\bDESIGN\b|\bFAILURE_MODES\b|\.\./shared")
"""Cites a document that is not in the repository."""

LONG: Final = 40
"""Most words of a sentence. The aim is 25."""


@dataclass(frozen=True)
class Passage:
    """A docstring, a block of comment lines, or a paragraph of a page."""

    path: Path
    line: int
    text: str
    docstring: bool = False

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def files() -> list[Path]:
    """Return the files whose prose is checked: the code of the package and of the examples, and every page."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]
    code = [file for folder in ("src", "gateway/src") for file in (ROOT / folder).rglob("*.py")]
    return sorted([*code, *(ROOT / "examples").glob("*.py"), *pages])


def passages(path: Path) -> Iterator[Passage]:
    """Yield the prose of one file, with code taken out."""
    source = path.read_text("utf-8")
    yield from _page(path, source) if path.suffix == ".md" else _module(path, source)


def _module(path: Path, source: str) -> Iterator[Passage]:
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else ():
            value = item.value if isinstance(item, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                for n, (line, text) in enumerate(_paragraphs(value.value)):
                    yield Passage(path, item.lineno + line, _without_code(text), docstring=n == 0)
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:noqa|type:|fmt:|--)", token.string):
            if comments and token.start[0] != comments[-1][0] + 1:
                yield _joined(path, comments)
                comments = []
            comments.append((token.start[0], token.string.lstrip("# ")))
    if comments:
        yield _joined(path, comments)


def _joined(path: Path, comments: list[tuple[int, str]]) -> Passage:
    return Passage(path, comments[0][0], _without_code(" ".join(text for _, text in comments)))


def _page(path: Path, source: str) -> Iterator[Passage]:
    fence = ""
    block: list[str] = []
    start = 0

    def paragraph() -> Iterator[Passage]:
        if block:
            yield Passage(path, start, _without_code(" ".join(block)))
            block.clear()

    for number, line in enumerate(source.splitlines(), 1):
        mark = re.match(r"\s*(```|~~~)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1] == fence:
            fence = ""
        elif not fence and line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line):
                yield Passage(path, number, _without_code(cell))
        elif not fence and line.strip() and not line.startswith("<!--"):
            if re.match(r"\s*(?:[*-]|\d+\.) |#", line):
                yield from paragraph()
            if not block:
                start = number
            block.append(line)
            continue
        yield from paragraph()
    yield from paragraph()


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a docstring with their first lines, list items and arguments apart. No examples."""
    block: list[str] = []
    start = 0
    margin: int | None = None  # the indentation that ends a block of code
    for number, line in enumerate(text.splitlines()):
        indent = len(line) - len(line.lstrip())
        if margin is not None and line.strip() and indent <= margin:
            margin = None
        if margin is None and line.lstrip().startswith((">>>", "...")):
            margin = indent - 1
        if margin is not None:
            line = ""
        ends = not line.strip() or re.match(r"\s*(?:[*-] |\d+\. |\w[\w, `*]*: |[A-Z]\w+:$|\|)", line)
        if ends and block:
            yield start, " ".join(block)
            block = []
        if line.strip():
            if not block:
                start = number
            block.append(line.strip())
        if line.rstrip().endswith("::"):
            margin = indent
    if block:
        yield start, " ".join(block)


def _without_code(text: str) -> str:
    text = re.sub(r"``.*?``|`[^`]*`|:\w+:`[^`]*`", "CODE", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"\"[^\"]*\"|“[^”]*”", "QUOTE", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a passage; a colon or semicolon does not end one."""
    yield from re.split(r"(?<=[.!?])[)\"'”]*\s+(?=[A-Z(`\"“*])", text)


def count_words(text: str) -> int:
    return len(WORDS.findall(text))


def findings(passages: Iterable[Passage]) -> Iterator[tuple[str, Passage, str]]:
    """Yield (kind, passage, the words in question) for everything that is found."""
    for passage in passages:
        if passage.docstring and NOUN_OPENER.match(passage.text):
            yield "docstring opens with What, Whether, Who", passage, passage.text[:60]
        for kind, pattern in PHRASES.items():
            for found in pattern.finditer(passage.text):
                yield kind, passage, passage.text[max(0, found.start() - 40) : found.end() + 30]
        for found in DANGLING.finditer(passage.text):
            yield "dangling citation", passage, found[0]
        for sentence in sentences(passage.text):
            if len(sentence) > LONG and count_words(sentence) > LONG:
                yield "long sentence", passage, f"{count_words(sentence)} words: {sentence[:80]}…"


@dataclass(frozen=True)
class Figures:
    """The figures that `test_prose.py` compares with the ceilings in ``data/prose.json``."""

    phrases_per_1000_words: float
    long_sentences: int
    dangling_citations: int


def measure(paths: Iterable[Path], show: bool = False) -> Figures:
    """Count the findings in some files."""
    found = [passage for path in paths for passage in passages(path)]
    words = sum(count_words(passage.text) for passage in found)
    counts: Counter[str] = Counter()
    for kind, passage, text in findings(found):
        counts[kind] += 1
        if show:
            print(f"{passage.place}: {kind}: {text}")
    long, dangling = counts.pop("long sentence", 0), counts.pop("dangling citation", 0)
    return Figures(round(1000 * counts.total() / max(words, 1), 2), long, dangling)


def main(arguments: list[str]) -> int:
    paths = [Path(argument).resolve() for argument in arguments] or files()
    print(
        measure([file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))], True)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
