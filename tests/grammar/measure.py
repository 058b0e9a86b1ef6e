"""Measure cells: Format × dialect → compiled, sound, accepted. Run as a program, it writes ``grammar_matrix.json``.

    python -m tests.grammar.measure --samples 200 --write

* A cell is measured with two tokenizations: every marker spelled as text (the cell), and special tokens by id
  (``by_id``), which the parser gets as well.
* A cell has several requests (``SCENES``). ``auto`` gets all requested samples, each with a call; the others get an
  eighth each.
* The vocabulary is that of one Format: single bytes, its markers, a few words. Templates that make the same Format are
  measured once.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from untemplate import OutputParser
from untemplate._internal.render import expressible, render
from untemplate.format import Format
from untemplate.grammar import Grammar, GrammarError, make_grammar
from untemplate.policy import Policy

from .cells import ANSWER, HUGE, MESSAGES, TOOLS, opened, problem, subjects
from .engines import Engine, LarkEngine, StructuralTagEngine, Vocabulary

MATRIX = Path(__file__).parents[1] / "data" / "grammar_matrix.json"
DIALECTS = ("gbnf", "lark", "structural_tag")
WHAT = ("compiled", "sound", "accepted", "by_id")
TRIES = 20
MOST = 300
"""Tokens of a sample; longer ones do not count."""


@dataclass(frozen=True)
class Scene:
    """One kind of request."""

    name: str
    choice: Any
    strict: bool = True
    parallel: bool = True
    reasoning: str | None = None
    response: bool = False

    def applies(self, fmt: Format) -> bool:
        has = fmt.reasoning is not None or (fmt.channels is not None and bool(fmt.channels.reasoning))
        return self.reasoning is None or has


AUTO = Scene("auto", "auto")
REQUIRED = Scene("required", "required")
SCENES = (
    AUTO,
    REQUIRED,
    Scene("any object", "required", strict=False),
    Scene("named, one call", {"type": "function", "function": {"name": "get_weather_map"}}, parallel=False),
    Scene("reasoning open", "required", reasoning="open"),
    Scene("response format", "auto", response=True),
)


@dataclass
class Cell:
    """The results of one cell."""

    compiled: bool = True
    samples: int = 0
    with_calls: int = 0
    """Samples of ``auto``, each with a call."""
    unsound: int = 0
    by_id_samples: int = 0
    by_id_unsound: int = 0
    renders: int = 0
    refused: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return self.compiled and self.samples > 0 and not self.unsound

    @property
    def accepted(self) -> bool:
        return self.compiled and self.renders > 0 and not self.refused

    @property
    def by_id(self) -> bool:
        return self.compiled and self.by_id_samples > 0 and not self.by_id_unsound

    def fault(self, text: str) -> None:
        if len(self.examples) < 5:
            self.examples.append(text[:1500])


@cache
def vocabulary_of(fmt: Format | None, by_id: bool, dialect: str = "") -> Vocabulary:
    if fmt is None or not by_id:
        return Vocabulary(frozenset(), fmt)
    special = frozenset(fmt.special_tokens)
    if dialect == "gbnf":
        from .llama import ENDS

        special -= ENDS
    return Vocabulary(special, fmt)


_LLAMA: dict[str, Any] = {}


def llama(vocabulary: Vocabulary | None = None) -> Any:
    """Return a server with this vocabulary. The last one is kept."""
    from .llama import Llama

    vocabulary = vocabulary or vocabulary_of(None, False)
    if _LLAMA.get("of") is vocabulary:
        return _LLAMA["server"]
    _LLAMA["server"] = Llama(vocabulary)
    _LLAMA["of"] = vocabulary
    return _LLAMA["server"]


def grammar_of(fmt: Format, scene: Scene, dialect: str, tokens: dict[str, int] | None) -> Grammar:
    return make_grammar(
        fmt, TOOLS, scene.choice, parallel_tool_calls=scene.parallel, strict=scene.strict, dialect=dialect,
        reasoning=scene.reasoning, response_format=ANSWER if scene.response else None, tokens=tokens,
    )  # fmt: skip


def engine_of(grammar: Grammar, vocabulary: Vocabulary) -> Engine:
    return LarkEngine(grammar, vocabulary) if grammar.dialect == "lark" else StructuralTagEngine(grammar, vocabulary)


def likely(grammar: Grammar, vocabulary: Vocabulary) -> list[int]:
    """Return tokens that lead to a call where calls are optional."""
    fmt = vocabulary.format
    assert fmt is not None
    words = [t.value for t in grammar.triggers if t.type != "pattern"]
    if fmt.reasoning is not None:
        words += [fmt.reasoning.close.text.strip(), fmt.reasoning.close.text.rstrip()]
    if fmt.channels is not None and fmt.channels.recipient is not None:
        words.append(fmt.channels.recipient.text)
    # By id a marker may be several tokens, with text between them.
    words += [t for w in words for t in vocabulary.special if t in w] + [w[0] for w in words if vocabulary.special]
    bare = [t.value.partition("\\s*(\\")[2][:1] for t in grammar.triggers if t.type == "pattern"]
    found = [vocabulary.ids[w] for w in words if w in vocabulary.ids]
    found += [ord(c) for c in (*bare, *(w for w in words if len(w) == 1)) if "" < c < "\x80"]
    return list(dict.fromkeys(found))


def samples(
    grammar: Grammar, vocabulary: Vocabulary, count: int, seed: int, lead: bool = True
) -> Iterator[tuple[str, list[int]] | str]:
    """Yield outputs that end, from up to ``TRIES`` for each of ``count``, or a text with the error. With ``lead``,
    tokens that lead to a call are likelier.
    """
    switches = likely(grammar, vocabulary) if lead else []
    if grammar.dialect == "gbnf":
        server = llama(vocabulary)
        bias = server.bias + [[t, 3.0] for t in switches if not grammar.lazy]
        for attempt in range(count * TRIES):
            answer = server.complete(grammar.text, seed * 100000 + attempt, MOST, logit_bias=bias)
            if answer is not None and not HUGE.search(answer[0]):
                yield answer
        return
    engine = engine_of(grammar, vocabulary)
    rng = random.Random(seed)
    for _ in range(count * TRIES):
        try:
            ids = engine.sample(rng, MOST, switches)
        except AssertionError as error:
            yield f"DEAD END: {error}"
            return
        # Invalid UTF-8 is not text; some engines allow it.
        if ids is None or HUGE.search(vocabulary.text(ids)) or "\ufffd" in vocabulary.text(ids):
            continue
        yield vocabulary.text(ids), ids


def measure(fmt: Format, dialect: str, count: int, *, by_id: int = 0, accept: bool = True) -> Cell:
    """Measure one cell: ``count`` samples of ``auto``, an eighth of the other scenes, and ``by_id`` of ``auto`` and
    ``required`` with special tokens by id.
    """
    cell = Cell()
    try:
        for scene in SCENES:
            if scene.applies(fmt):
                _sample(fmt, dialect, scene, count if scene is AUTO else -(-count // 8), cell)
        if accept:
            completeness(fmt, dialect, cell)
        for scene in (AUTO, REQUIRED):
            if by_id:
                _sample(fmt, dialect, scene, by_id, cell, by_id=True)
    except (GrammarError, ValueError, RuntimeError) as error:
        cell.compiled = False
        cell.fault(f"{type(error).__name__}: {error}")
    return cell


def _sample(fmt: Format, dialect: str, scene: Scene, count: int, cell: Cell, *, by_id: bool = False) -> None:
    vocabulary = vocabulary_of(fmt, by_id, dialect)
    grammar = grammar_of(fmt, scene, dialect, vocabulary.tokens() if by_id else None)
    policy = Policy() if grammar.by_id else Policy(spelled_markers="marker")
    parser = OutputParser(vocabulary if by_id else None, format=fmt, policy=policy)
    prompt = opened(fmt) if scene.reasoning == "open" else None
    found = 0
    for sample in samples(grammar, vocabulary, count, len(scene.name), scene is AUTO):
        why: str | None
        if isinstance(sample, str):
            why, text, calls = sample, "", True
        else:
            text, ids = sample
            calls = scene.choice != "auto" or grammar.lazy
            why = problem(
                parser, text, ids if by_id else (), strict=scene.strict, calls=calls, prompt=prompt,
                response=scene.response,
            )  # fmt: skip
            # Under ``auto`` an output without a call must be sound too, but does not count.
            calls = calls or scene.response or bool(parser.parse(text, tools=TOOLS, prompt=prompt).tool_calls)
        if why is not None:
            cell.fault(f"{'by id, ' if by_id else ''}{scene.name}: {why}: {text!r}")
        if by_id:
            cell.by_id_samples += calls
            cell.by_id_unsound += why is not None
        else:
            cell.samples += calls
            cell.with_calls += calls and scene is AUTO
            cell.unsound += why is not None
        found += calls
        if found >= count:
            return


def completeness(fmt: Format, dialect: str, cell: Cell) -> None:
    """Check that the grammar accepts what ``render`` writes."""
    vocabulary = vocabulary_of(fmt, False)
    groups: dict[Grammar, list[str]] = {}
    for message in MESSAGES:
        if expressible(fmt, message, tools=TOOLS) is not None:
            continue
        calls = bool(message.get("tool_calls"))
        text = render(fmt, message)
        # A lazy grammar begins where calls begin; ``required`` describes the whole output there.
        plain = calls and not message.get("content") and dialect == "gbnf"
        if dialect == "gbnf" and not plain:
            continue
        groups.setdefault(grammar_of(fmt, REQUIRED if plain else AUTO, dialect, None), []).append(text)
    for grammar, texts in groups.items():
        if dialect == "gbnf":
            from .llama import accepted

            verdicts = accepted(grammar.text, texts)
        else:
            engine = engine_of(grammar, vocabulary)
            verdicts = []
            for text in texts:
                ids = vocabulary.encode(text)
                verdicts.append(engine.accepts(ids) == len(ids) + 1)
        for text, verdict in zip(texts, verdicts, strict=True):
            cell.renders += 1
            if not verdict:
                cell.refused += 1
                cell.fault(f"refused: {text!r}")


def row(cell: Cell) -> dict[str, Any]:
    """Return a cell as a row of the matrix."""
    return {
        **{what: getattr(cell, what) for what in WHAT},
        "samples": cell.samples, "with_calls": cell.with_calls, "by_id_samples": cell.by_id_samples,
        "renders": cell.renders,
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=200)
    options.add_argument("--by-id", type=int, default=40, help="samples with special tokens by id")
    options.add_argument("--dialects", default=",".join(DIALECTS))
    options.add_argument("--names", default="", help="cells to measure; all others stay as they are")
    options.add_argument("--part", default="0/1", help="i/n: every n-th Format from the i-th on")
    options.add_argument("--write", action="store_true", help=f"write {MATRIX.name}")
    options.add_argument("--json", default="", help="write the measured cells here")
    chosen = options.parse_args()
    part, parts = map(int, chosen.part.split("/"))
    groups: dict[Format, list[str]] = {}
    for name, fmt in subjects().items():
        if not chosen.names or name in chosen.names.split(","):
            groups.setdefault(fmt.extend(name="x"), []).append(name)
    table: dict[str, dict[str, dict[str, Any]]] = {}
    bad = 0
    for fmt, names in list(groups.items())[part::parts]:
        for dialect in chosen.dialects.split(","):
            begun = time.perf_counter()
            cell = measure(fmt, dialect, chosen.samples, by_id=chosen.by_id)
            took = time.perf_counter() - begun
            fine = cell.sound and cell.accepted and (cell.by_id or not chosen.by_id)
            bad += not fine
            print(
                f"{names[0]:36} {dialect:15} compiled={cell.compiled} "
                f"sound={cell.samples - cell.unsound}/{cell.samples} ({cell.with_calls} auto) "
                f"accepted={cell.renders - cell.refused}/{cell.renders} "
                f"by_id={cell.by_id_samples - cell.by_id_unsound}/{cell.by_id_samples} "
                f"{took:.1f}s{'' if fine else '   <--'}",
                flush=True,
            )
            for example in cell.examples:
                print("     ", example[:700])
            for name in names:
                table.setdefault(name, {})[dialect] = row(cell)
        if chosen.json:
            Path(chosen.json).write_text(json.dumps(table, indent=1) + "\n")
    if chosen.write:
        write(table)
    print(f"{bad} cells fall short")
    sys.exit(bad > 0)


def write(table: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Write cells into the matrix; cells that were not measured stay."""
    matrix: dict[str, dict[str, Any]] = json.loads(MATRIX.read_text())
    for name, cells in table.items():
        matrix.setdefault(name, {}).update(cells)
    lines = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(d)}: {json.dumps(cells[d])}" for d in sorted(cells))
        + "\n }"
        for name, cells in sorted(matrix.items())
    ]
    MATRIX.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
