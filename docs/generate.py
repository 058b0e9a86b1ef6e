"""Write the parts of the documentation that are made from the code: ``formats.md``, ``models-names.md``, ``format.md``,
the table of policies in ``meaning.md``, the settings in ``settings.md``, the tested grammars in ``grammar.md``, and the
fields of requests in ``gateway-apis.md``. People look up their model and its format on a code host, so these pages are
in the repository. ``tests/test_docs.py`` fails if one is out of date.

``api.md`` and ``machine.md`` say what the docstrings say. They are only built, in ``build/docs``, for the site.

``make docs`` runs it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import untemplate
from untemplate._internal.backends.quotations import CONTEXTS, quoted_calls
from untemplate._internal.cli.formats import evidence_word, samples
from untemplate._internal.inspector.advice import ADVICE, LOST, may_be_run
from untemplate._internal.machine import call_arguments, calls, json_place
from untemplate._internal.machine.compiler import compile_format
from untemplate._internal.machine.diagnostics import DIAGNOSTICS
from untemplate._internal.machine.elements import reader as elements
from untemplate._internal.machine.json import call_object
from untemplate._internal.machine.literal import reader as literal
from untemplate._internal.machine.modes import MODES
from untemplate._internal.machine.program import Program
from untemplate._internal.machine.rules import (
    CLOSE_CALL,
    CLOSE_REASONING,
    CLOSE_SECTION,
    END_TURN,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    OPEN_REASONING,
)
from untemplate._internal.machine.tagged import reader as tagged
from untemplate._internal.machine.tagged import value_reader
from untemplate._internal.message_parser import MessageParser
from untemplate.format import (
    Channels,
    Content,
    ElementArguments,
    Format,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)
from untemplate.formats import Entry, Evidence, Kind, entries, named
from untemplate.formats import _registry as registry
from untemplate.formats._family import Engine
from untemplate.formats._registry import chosen_name
from untemplate.formats._suggesting import ranked, suggested
from untemplate.formats._unlisted import UNLISTED
from untemplate.policy import Policy
from untemplate_gateway import settings
from untemplate_gateway.protocols.fields import Ignored, Open, describe, description, fields_of, nested
from untemplate_gateway.protocols.openapi import requests

DOCS = Path(__file__).parent
BUILT = DOCS.parent / "build/docs"

HEAD = """\
# Supported formats

<!-- Made by `make docs` from src/untemplate/formats/. Do not edit. -->

{count} entries: {reasoning} reasoning formats and {tool} tool formats, from {families} families. Every name and alias
works in `OutputParser.named(name)` and in `untemplate parse --format name`. A name that is both means both. There are
two more forms wherever a format is named:

* `hermes+qwen3`: the tool calls of the first and the reasoning of the second.
* `FILE.json`: a Format as JSON. Names in requests to the gateway and in rows of a batch read no files.

`untemplate formats NAME` shows one format in the terminal, and with `--json` prints it as data. `untemplate formats
Qwen/Qwen3-8B` shows those for a model, and [models-names.md](models-names.md) those for all models, with the names in
vLLM, SGLang and Ollama. [Embedding](embedding.md#formats-of-your-package) shows how a package adds formats.

*Evidence* is the firmest public source of an entry. All sources are listed below the table, as a repository and a file
or an issue in it, with the day on which they were looked up.

| word | meaning |
| --- | --- |
| template | the chat template of a model that writes the format: what the model was trained to write |
| engine | the source or the manual of an inference engine that parses it |
| report | an issue or a file that shows an output |
| none | the name is known, but no firm source shows what its models write: the Format is a guess or incomplete |

*Quoted calls* has the number of quoted calls that are called, of {contexts}, without token ids and with them. In
brackets: whether ids prove the calls of the format (`yes`, `partly`, `no`), by the tokens that the format lists.
[Injected text](injected-text.md) describes the measure; `untemplate explain MODEL` measures with the tokens of the
model.

*Engines* lists the engines that document this name or one of its aliases. The samples are rendered from the Format, so
they show the spelling that the decoding grammar allows; the parser accepts more spellings.

"""


def formats_page() -> str:
    """Return the page ``formats.md``."""
    found = entries()
    count = {kind: sum(entry.kind == kind for entry in found) for kind in ("reasoning", "tool")}
    head = HEAD.format(count=len(found), families=len(registry.families()), contexts=len(CONTEXTS), **count)
    seen: set[Format] = set()
    return head + "\n".join(_family(module, seen) for module in registry.families())


def _family(module: str, seen: set[Format]) -> str:
    """Return a family's section. ``seen`` holds the Formats that were already shown; another name of one is not shown
    again."""
    family = import_module(f"untemplate.formats._families.{module}")
    lines = [f"## {module}", "", *_markdown(inspect.cleandoc(family.__doc__ or "")), ""]
    lines += ["| name | kind | aliases | engines | models | evidence | quoted calls |", "|" + " --- |" * 7]
    lines += [_row(entry) for entry in family.ENTRIES]
    if sources := list(_evidence(family.ENTRIES)):
        lines += ["", "Evidence:", "", *sources]
    for entry in family.ENTRIES:
        plain = entry.format.extend(name="plain")
        if plain not in seen:
            seen.add(plain)
            lines += _samples(entry)
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    cells = (
        f"`{entry.name}`",
        entry.kind,
        _listed(entry.aliases),
        ", ".join(entry.engines),
        _listed(entry.models) if len(entry.models) <= MOST_MODELS else f"{len(entry.models)} patterns: {MODELS_LINK}",
        evidence_word(entry),
        _quoted(entry),
    )
    return "| " + " | ".join(cells) + " |"


def _quoted(entry: Entry) -> str:
    """Return how an entry reads quoted calls: how many are called without and with ids, and if ids prove calls."""
    found = quoted_calls(entry.format) if entry.kind == "tool" else None
    if found is None:
        return "-"
    return f"{len(found.without_ids)}, {len(found.with_ids)} with ids ({found.provable})"


MODELS_HEAD = """\
# Names by model

<!-- Made by `make docs` from src/untemplate/formats/ and docs/engine_names.json. Do not edit. -->

*Name* is the one for `OutputParser.named(name)`, `--format` and `--enforce-parser`. `hermes+qwen3` means the calls of
`hermes` and the reasoning of `qwen3`. The other columns have the names in each project: of an engine first for tool
calls, then for reasoning. Where several rows match an id, the one with the most letters counts: `granite-3.2-*` before
`granite-3.*`. A dash means that its lists have no name for it. `make names` renews those that come from
wheels; the others are kept by hand.

{versions}

llama.cpp has no names of parsers: its column has the structure of the calls in [its words](from-llamacpp.md), by our
Format of them, or *own* where it has no word for that. TensorRT-LLM's tool parser `qwen3` is `hermes` here,
because `qwen3` names the reasoning. `untemplate formats MODEL` shows the entries for one model, and
[formats.md](formats.md) every entry with its evidence.

A model can write another format than its name suggests. `OutputParser.for_model(model)` measures the formats against
the model's chat template.

| models | name | {columns} |
| --- | --- | {rule} |
"""
UNLISTED_HEAD: Final = """\
## Names without a format

`OutputParser.named` and `untemplate formats` answer these names with the reason.

"""
MOST_MODELS: Final = 40
"""Patterns of models that a table shows of one entry."""
MODELS_LINK: Final = "[names by model](models-names.md)"
ENGINE_COLUMNS: Final[Mapping[Engine, str]] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "ollama": "Ollama",
    "tensorrt-llm": "TensorRT-LLM",
    "dynamo": "dynamo",
    "vllm.rs": "vllm.rs",
}
PROJECT_COLUMNS: Final[Mapping[str, str]] = {
    "mlx-lm": "mlx-lm",
    "lmdeploy": "LMDeploy",
    "xinference": "Xinference",
    "smg tool-parser": "SGLang's gateway",
    "ms-swift": "ms-swift",
    "tinker-cookbook": "tinker-cookbook",
    "renderers": "renderers",
}


def models_page() -> str:
    """Return the page ``models-names.md``."""
    engines = json.loads((DOCS / "engine_names.json").read_text("utf-8"))
    projects = json.loads((DOCS.parent / "tests" / "data" / "names.json").read_text("utf-8"))["projects"]
    titles = [*ENGINE_COLUMNS.values(), "llama.cpp", *PROJECT_COLUMNS.values()]
    shown = ((ENGINE_COLUMNS, engines), (PROJECT_COLUMNS, projects))
    known = [(title, lists[name]["version"]) for table, lists in shown for name, title in table.items()]
    versions = "\n".join(f"* {title} {version}" for title, version in known if version[0].isdigit())
    head = MODELS_HEAD.format(
        versions=versions,
        columns=" | ".join(titles),
        rule=" | ".join("---" for _ in titles),
    )
    patterns = {pattern for entry in entries() if entry.verified for pattern in entry.models if "/" in pattern}
    models = "".join(_model(pattern, engines, projects) for pattern in sorted(patterns, key=str.lower))
    names = "".join(f"* `{name}`: {reason}.\n" for name, reason in sorted(UNLISTED.items()))
    return f"{head}{models}\n{UNLISTED_HEAD}{names}"


def _model(
    pattern: str, engines: Mapping[Engine, Mapping[Kind, Sequence[str]]], projects: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return the row of a pattern of model ids."""
    example = pattern.replace("*", "")
    rows = {kind: next((row for row, _ in ranked(kind, example, None)), None) for kind in registry.KINDS}
    chosen = next(suggested(example, None))[1]
    cells = [f"`{pattern}`", f"`{chosen_name(chosen)}`"]
    for engine in ENGINE_COLUMNS:
        theirs = [_their_names(rows[kind], engines[engine][kind]) for kind in ("tool", "reasoning")]
        cells.append("; ".join(theirs) if any(cell != "-" for cell in theirs) else "-")
    cells.append(_structure(chosen))
    row = rows["tool"] or rows["reasoning"]
    cells += [_their_names(row, projects[project]["names"]) for project in PROJECT_COLUMNS]
    return "| " + " | ".join(cells) + " |\n"


def _structure(fmt: Format) -> str:
    """Return llama.cpp's word for the structure of the calls of a Format."""
    if not fmt.tools:
        return "-"
    body = fmt.tools[0].body
    if isinstance(body, JsonBody):
        return "`JSON_NATIVE`"
    if isinstance(body.arguments, JsonArguments):
        return "`TAG_WITH_JSON`"
    return "`TAG_WITH_TAGGED`" if isinstance(body.arguments, TaggedArguments) else "*own*"


def _their_names(row: registry.IndexRow | None, known: Sequence[str]) -> str:
    """Return the names of a list that find an entry."""
    if row is None:
        return "-"
    return _listed(tuple(name for name in known if registry.finds(row, name))) or "-"


def _evidence(entries: tuple[Entry, ...]) -> Iterator[str]:
    """Yield the sources of a family's entries, each with the names of the entries that rest on it."""
    found: dict[Evidence, dict[str, None]] = {}
    for entry in entries:
        for evidence in entry.evidence:
            found.setdefault(evidence, {})[entry.name] = None
    for evidence, names in found.items():
        note = f", {evidence.note}" if evidence.note else ""
        yield f"* {_listed(tuple(names))}: {evidence.kind}, `{evidence.source}`, {evidence.date}{note}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _samples(entry: Entry) -> Iterator[str]:
    """Yield a call, or reasoning with an answer, as the entry's models write it."""
    fmt = entry.format if entry.kind == "reasoning" else named(entry.name)
    wanted = "Reasoning" if entry.kind == "reasoning" else "A call"
    for title, text in samples(fmt):
        if title.startswith(wanted):
            yield from ("", f"`{entry.name}`, {entry.kind}:", "", "~~~text", *text.split("\n"), "~~~")


def _markdown(docstring: str) -> Iterator[str]:
    """Yield reStructuredText as Markdown: one kind of quotes, and no text that HTML would read as markup."""
    for line in docstring.split("\n"):
        yield re.sub(r"``(.+?)``", r"`\1`", line)


# -- trainers that were read ------------------------------------------------------------------------------------------

TRAINERS_HEAD = """\
# Trainers that were read and not run

<!-- Made by `make docs` from docs/trainers.json. Do not edit. -->

These projects read outputs with parsers of an engine, by name. **None of them was run with untemplate**: each needs a
GPU. Their sources were read. The expressions in the tables are what they ask of a parser; the tests evaluate them with
untemplate's classes. AReaL's own module was run ([example](../examples/areal_parsers.py)), and so were
[TRL, verl, tinker-cookbook and verifiers](integrations.md).
"""


def trainers_page() -> str:
    """Return the page ``trainers.md``."""
    projects = json.loads((DOCS / "trainers.json").read_text("utf-8"))["projects"]
    return TRAINERS_HEAD + "".join(_trainer(name, record) for name, record in projects.items())


def _trainer(name: str, record: Mapping[str, Any]) -> str:
    """Return the section of a trainer."""
    source = f"`{record['repository']}`" + (f", package {record['package']}" if "package" in record else "")
    commit = f", commit {record['commit'][:12]}" if "commit" in record else ""
    parts = [
        f"\n## {name}\n\nNot run. Read on {record['read']}: {source}, {record['version']}{commit}.\n",
        f"\n{record['way']}\n",
        f"\n{record['use']}\n\n```text\n{record['settings']}\n```\n",
    ]
    if code := record.get("code"):
        parts.append(f"\n```text\n{code}\n```\n")
    if calls := record["calls"]:
        parts.append("\n| file | asks for |\n| --- | --- |\n")
        parts += [f"| `{one['file']}` | `{one['call']}` |\n" for one in calls]
    for kind, names in record["names"].items():
        if names:
            parts.append(f"\nNames that it uses ({kind}): {', '.join(_trainer_name(record, one) for one in names)}.\n")
    return "".join(parts)


def _trainer_name(record: Mapping[str, Any], name: str) -> str:
    if name in record.get("unknown", ()):
        return f"`{name}` (in no list of the engine)"
    ours = record.get("renamed", {}).get(name)
    return f"`{name}` (here `{ours}`)" if ours else f"`{name}`"


# -- the fields of a Format -----------------------------------------------------------------------------------------

FORMAT_HEAD = """\
# Fields of a Format

<!-- Made by `make docs` from src/untemplate/format. Do not edit. -->

A Format describes the output of one model family as data: frozen dataclasses, imported from `untemplate.format`.
[CONTRIBUTING](../CONTRIBUTING.md#add-a-model-in-one-file) shows one being written, and `untemplate formats NAME --json`
prints one of the catalogue. In JSON every part is an object with the same keys. Fields at their default are left out, a
marker without other spellings is a string, and `body` and `arguments` have a `kind`, which is in brackets below.
`untemplate formats --schema` prints the JSON Schema of a Format.

A `Body` is a `JsonBody` (`json`) or a `NamedBody` (`named`). `Arguments` are `JsonArguments` (`json`),
`TaggedArguments` (`tagged`), `ElementArguments` (`element`) or `LiteralArguments` (`literal`). An `Escape` is `"none"`
or `"xml"`.

"""

PARTS = (
    *(Format, Marker, Turn, Reasoning, Content, Tools, JsonBody, NamedBody),
    *(JsonArguments, TaggedArguments, ElementArguments, LiteralArguments, Channels),
)
"""The classes of a Format, from the outside in."""


def format_page() -> str:
    """``format.md``."""
    return FORMAT_HEAD + "\n".join(_part(part) for part in PARTS)


def _part(part: type[Any]) -> str:
    """A section: what a class is, and a table of its fields."""
    lines = [f"## {part.__name__}", "", *_markdown(inspect.cleandoc(part.__doc__ or "")), ""]
    said = _field_docs(part)
    if said:
        lines += ["| field | type | meaning |", "| --- | --- | --- |"]
    for field in fields(part):
        kind = str(field.type).replace("|", "\\|")
        lines.append(row(f"`{field.name}`", f"`{kind}`", said.get(field.name, "").replace("|", "\\|")))
    return "\n".join(lines).rstrip("\n") + "\n"


# -- policies -----------------------------------------------------------------------------------------------------


def policies() -> str:
    """Return the fields of ``Policy`` as a table, from their annotations and docstrings."""
    lines = ["| policy | values, the default first | what it decides |", "| --- | --- | --- |"]
    said = _field_docs(Policy)
    for field in fields(Policy):
        annotation = str(field.type)
        if found := re.fullmatch(r"Literal\[(.*)\]", annotation):
            values = sorted(ast.literal_eval(f"[{found[1]}]"), key=lambda value: value != field.default)
        else:
            values = [field.default, *([True, False] if "bool" in annotation else [])]
        shown = " · ".join(f"`{value}`" for value in values)
        lines.append(row(f"`{field.name}`", shown, said.get(field.name, "")))
    return "\n".join(lines)


def _field_docs(cls: type) -> dict[str, str]:
    """Return the docstring of each field, on one line; those of its base classes come first."""
    bases = [base for base in cls.__bases__ if base is not object]
    inherited = {name: said for base in bases for name, said in _field_docs(base).items()}
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = inherited
    for statement, below in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            docs[statement.target.id] = " ".join(_markdown(" ".join(str(below.value.value).split())))
    return docs


def row(*cells: str) -> str:
    """Return a line of a table.

    Raises:
        ValueError: a cell is empty: something in the code has no description.
    """
    if not all(cell.strip() for cell in cells):
        raise ValueError(f"a cell of a generated table is empty: {cells!r}")
    return "| " + " | ".join(cells) + " |"


# -- settings -----------------------------------------------------------------------------------------------------


def settings_tables() -> str:
    """Return the settings of the gateway, with a table for each group of ``--help``."""
    blocks = []
    for title, group in itertools.groupby(settings.fields(), key=lambda one: one.title):
        lines = [f"## {title[0].upper()}{title[1:]}", ""]
        lines += ["| key | flag | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_setting(one) for one in group]
        blocks.append("\n".join(lines))
    about = "The keys that only a table `[models.NAME]` has ([several models](several-models.md))."
    lines = ["## Several models", "", about, "", "| key | default | meaning |", "| --- | --- | --- |"]
    for one in settings.model_fields():
        _, _, shown, meaning = _cells(one)
        lines.append(row(f"`{one.name}`", shown, meaning))
    blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _setting(one: settings.Field) -> str:
    return row(*_cells(one))


def _cells(one: settings.Field) -> tuple[str, str, str, str]:
    """Return key, flag, default and meaning of a setting."""
    flag = one.flag if one.path != "model" else "MODEL"
    values = " · ".join(f"`{choice}`" for choice in one.choices)
    meaning = one.description.replace("|", "\\|") + (f" ({values})" if values else "")
    default = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
    shown = f"`{default}`" if one.default or one.type in (bool, int, float) else "–"
    return f"`{one.path}`", f"`{flag}`" if flag else "–", shown, meaning


# -- fields of requests -------------------------------------------------------------------------------------------


def fields_tables() -> str:
    """Return the fields of all requests as a table, and the ignored ones as a list."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    ignored: dict[str, list[str]] = {}
    for path, kind in requests().items():
        for name, type_ in field_types(kind):
            if type_ == Ignored | None or type_ is Ignored:
                ignored.setdefault(path, []).append(name)
            else:
                rows.setdefault((name, describe(type_), description(type_)), []).append(path)
    lines = ["| field | value | meaning | requests to |", "| --- | --- | --- | --- |"]
    for (name, value, meaning), paths in sorted(rows.items(), key=lambda row: row[0][0]):
        lines.append(row(f"`{name}`", value, meaning, _listed(tuple(paths))))
    lines += ["", "Accepted and ignored:", ""]
    lines += [f"* `{path}`: {_listed(tuple(sorted(names)))}" for path, names in ignored.items()]
    return "\n".join(lines)


def field_types(kind: type[Open], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the type of each field, and of the fields of objects in it."""
    for field in fields_of(kind):
        yield prefix + field.encode_name, field.type
        if (inner := nested(field.type)) is not None:
            yield from field_types(inner, f"{prefix}{field.encode_name}.")


# -- pages with something made in them ----------------------------------------------------------------------------


def with_made(page: str, name: str, made: str) -> str:
    """Return a page with the text between its two marks replaced."""
    begin, end = f"<!-- {name}: made by `make docs` -->", f"<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def with_policies(page: str) -> str:
    """Return a page with its table of policies updated."""
    return with_made(page, "policies", policies())


def with_settings(page: str) -> str:
    """Return a page with its tables of settings updated."""
    return with_made(page, "settings", settings_tables())


def with_fields(page: str) -> str:
    """Return a page with its table of fields updated."""
    return with_made(page, "fields", fields_tables())


# -- diagnostics ---------------------------------------------------------------------------------------------------


def diagnostics() -> str:
    """Return the table of diagnostics: the message of each, and its advice."""
    head = ("code", "meaning", "is a call lost?", "may it be run?", "what to do")
    lines = [row(*head), row(*["---"] * len(head))]
    for code, said in sorted(DIAGNOSTICS.items()):
        lines.append(row(f"[`{code}`](#{code})", said, LOST.get(code, "no"), may_be_run(code), ADVICE[code]))
    return "\n".join(lines)


def with_diagnostics(page: str) -> str:
    """Return a page with its table of diagnostics updated."""
    return with_made(page, "diagnostics", diagnostics())


# -- quoted calls --------------------------------------------------------------------------------------------------


def quotations() -> str:
    """Return the table of quoted calls: the formats that are read alike in one row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    seen: set[Format] = set()
    for entry in entries():
        fmt = entry.format
        if entry.kind != "tool":
            continue
        measured = None if fmt in seen else quoted_calls(fmt)
        seen.add(fmt)
        if measured is not None:
            found = (measured.without_ids, measured.silent, measured.with_ids)
            alike.setdefault((measured.provable, *(str(len(contexts)) for contexts in found)), []).append(
                f"`{entry.name}`"
            )
    head = ("formats", "ids prove calls", "called without ids", "of them without a report", "called with ids")
    order = ("yes", "partly", "no")
    rows = sorted(alike.items(), key=lambda item: (order.index(item[0][0]), item[0][1:]))
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(", ".join(names), *key) for key, names in rows)])


def with_quotations(page: str) -> str:
    """Return a page with its table of quoted calls updated."""
    return with_made(page, "quoted calls", quotations())


# -- grammars -----------------------------------------------------------------------------------------------------

MATRIX = DOCS.parent / "tests" / "data" / "grammar_matrix.json"
DIALECTS = {"gbnf": "GBNF", "lark": "Lark", "structural_tag": "structural tag"}


def cells() -> str:
    """Return the matrix of grammars: the sums, and the number of samples of each cell."""
    matrix: dict[str, dict[str, dict[str, Any]]] = json.loads(MATRIX.read_text("utf-8"))
    lines = ["| dialect | cells | compile | sound | renders accepted | sound by id | samples |", "|" + " --- |" * 7]
    for dialect, title in DIALECTS.items():
        found = [row[dialect] for row in matrix.values()]
        holds = [sum(cell[what] for cell in found) for what in ("compiled", "sound", "accepted", "by_id")]
        samples = sum(cell["samples"] + cell["by_id_samples"] for cell in found)
        lines.append(f"| {title} | {len(found)} | {' | '.join(map(str, holds))} | {samples} |")
    lines += [
        "",
        "Samples per cell (of them under `auto`, each with a call). Names that end in `.jinja` are public chat",
        "templates, by analysis.",
        "",
        "| format or template | " + " | ".join(DIALECTS.values()) + " |",
        "|" + " --- |" * 4,
    ]
    lines += [f"| `{name}` | " + " | ".join(_cell(row[d]) for d in DIALECTS) + " |" for name, row in matrix.items()]
    return "\n".join(lines)


def _cell(cell: dict[str, Any]) -> str:
    missing = [what for what in ("compiled", "sound", "accepted", "by_id") if not cell[what]]
    shown = f"{cell['samples']} ({cell['with_calls']})"
    return f"{shown}, not {', '.join(missing)}" if missing else shown


def with_cells(page: str) -> str:
    """Return a page with its tables of cells updated."""
    return with_made(page, "cells", cells())


# -- the machine --------------------------------------------------------------------------------------------------

MACHINE = """\
# The machine

<!-- Made by `make docs` from src/untemplate/_internal/machine/. Do not edit. -->

The machine reads one output, in any pieces, and emits deltas. The docstring of `machine/machine.py` explains it; the
[architecture](architecture.md) follows one output through it. This page is drawn from the code.

## Modes

The machine runs one reader at a time. The mode is the reader that it runs.

{table}

![The modes as boxes, and arrows to the modes that may follow each of them](pictures/machine.svg)

## Phases

Inside a call, each reader keeps its place in one phase.

{phases}

## One Format's program

A Format is compiled to a Program. This is the Program of `{name}`, without the literals inside its calls.
Rounded boxes are states of free text, and square boxes are ways to write calls. An arrow shows markers, and what they
do. `untemplate explain MODEL --parser` shows the whole Program as text.

{program}
"""


READERS: Final = {
    "CallReader": calls.PHASES,
    "ArgumentsReader": call_arguments.PHASES,
    "CallObjectReader": call_object.PHASES,
    "TaggedReader": tagged.PHASES,
    "ValueReader": value_reader.PHASES,
    "ElementReader": elements.PHASES,
    "LiteralReader": literal.PHASES,
    "JsonPlace": json_place.PHASES,
}
"""Reader → what it reads in each phase."""


def mode_table() -> Iterator[str]:
    """Yield the lines of a Markdown table of the modes."""
    yield "| mode | reader | it reads | may be followed by |"
    yield "| --- | --- | --- | --- |"
    for name, reader, reads, followers in MODES.values():
        yield f"| {name} | {reader} | {reads} | {', '.join(MODES[mode][0] for mode in followers)} |"


def phase_table() -> Iterator[str]:
    """Yield the lines of a Markdown table of the phases of the readers."""
    yield "| reader | its phases |"
    yield "| --- | --- |"
    for reader, phases in READERS.items():
        yield f"| {reader} | {', '.join(phases)} |"


def machine_page() -> str:
    """Return the page ``machine.md``."""
    program = compile_format(named("hermes", reasoning="qwen3"))
    tables = {"table": "\n".join(mode_table()), "phases": "\n".join(phase_table())}
    return MACHINE.format(name=program.name, program=_program_diagram(program), **tables)


def _program_diagram(program: Program) -> str:
    lines = [f'{state.name}("{state.name}")' for state in program.states]
    lines += [f'calls{i}["calls: {syntax.path}"]' for i, syntax in enumerate(program.call_syntaxes)]
    lines += ["turn_end([end of the turn])"]
    arrows: dict[tuple[str, str, str], list[str]] = {}
    for state in program.states:
        for text, index in state.literals.tags.items():
            rule = state.rules[index]
            if rule.kind in (OPEN_CALLS, OPEN_BARE_CALLS):
                goals = [(f"calls{program.call_syntaxes.index(syntax)}", "opens calls") for syntax, _ in rule.entries]
            else:
                goal, action = _ACTIONS[rule.kind]
                goals = [(goal or state.name, action)]
            for goal, action in goals:
                arrows.setdefault((state.name, goal, action), []).append(_label(text))
    for (source, goal, action), texts in arrows.items():
        lines.append(f'{source} -- "{"<br>".join(texts)}<br>({action})" --> {goal}')
    lines += [
        f'calls{i} -- "end of the calls" --> {program.states[program.content].name}'
        for i in range(len(program.call_syntaxes))
    ]
    return _mermaid(lines)


_ACTIONS = {
    OPEN_REASONING: ("reasoning", "opens reasoning"),
    CLOSE_REASONING: ("content", "closes reasoning"),
    CLOSE_SECTION: ("", "closes a section, or is dropped"),
    CLOSE_CALL: ("", "dropped after a call"),
    END_TURN: ("turn_end", "ends the turn"),
}


def _label(text: str) -> str:
    """Return a literal as the label of an arrow, without the characters that Mermaid or HTML would interpret."""
    shown = repr(text)[1:-1]
    for character, entity in (("&", "#amp;"), ("<", "#lt;"), (">", "#gt;"), ('"', "#quot;"), ("|", "#124;")):
        shown = shown.replace(character, entity)
    return shown


def _mermaid(lines: list[str]) -> str:
    return "\n".join(["~~~mermaid", "flowchart TD", *(f"    {line}" for line in lines), "~~~"])


API_HEAD: Final = """\
# API

<!-- Made by `make docs` from the docstrings. Do not edit. -->

The names that `untemplate` itself has, and after them those of its public modules. What is not here is internal, or has
a page of its own: the [fields of a Format](format.md), the [gateway](gateway.md), the [integrations](integrations.md).
[The changelog](../CHANGELOG.md) explains what *public* means.

"""
SUBJECTS: Final = {
    "Parse an output": (
        *("OutputParser", "Stream", "DeltaMessage", "ParsedOutput", "ToolCall", "Diagnostic", "Span", "Policy"),
    ),
    "Token ids and sampling": ("assemble", "Item"),
    "Formats": ("Format",),
    "Chat templates": ("ChatTemplate", "Certificate"),
    "Errors": (
        *("UntemplateError", "FormatError", "UnknownFormatError", "IncompatibleFormatsError"),
        *("TemplateError", "AnalysisError", "GrammarError"),
    ),
    "The build": ("COMPILED",),
}
"""Subject → names of ``untemplate``."""
_WIDTH: Final = 85
"""Most characters of a line of code that is made here: more are cut off on a laptop."""
MODULES: Final = (
    *("analysis", "batch", "check", "errors", "formats", "grammar", "messages", "policy", "selection", "templates"),
    *("testing", "tools", "vllm_api"),
)
"""Public modules of the page. ``untemplate.format`` and ``untemplate.integrations`` have pages of their own."""


def api_page() -> str:
    """Return the page ``api.md``."""
    names = [name for listed in SUBJECTS.values() for name in listed]
    missing = {name for name in untemplate.__all__ if not name.startswith("_")}.symmetric_difference(names)
    if missing:
        raise ValueError(f"docs/generate.py: SUBJECTS and untemplate.__all__ differ in {sorted(missing)}")
    shown = [getattr(untemplate, name) for name in names]
    parts = [_contents()]
    for subject, listed in SUBJECTS.items():
        parts.append(f"## {subject}\n")
        parts += [_described(name, getattr(untemplate, name), 3) for name in listed]
    for module_name in MODULES:
        module = import_module(f"untemplate.{module_name}")
        parts.append(f"## `untemplate.{module_name}`\n\n{_as_markdown(inspect.cleandoc(module.__doc__ or ''))}\n")
        for name in sorted(module.__all__, key=str.lower):
            thing = getattr(module, name)
            if any(thing is one for one in shown):
                parts.append(f"`{name}` is [above](#{name.lower()}).\n")
            elif inspect.isclass(thing) or inspect.isroutine(thing):
                parts.append(_described(f"{module_name}.{name}", thing, 3))
            else:
                text = str(thing).replace("typing.", "")
                parts.append(f"### `{module_name}.{name}`\n\n```text\n{text}\n```\n")
    return API_HEAD + "\n".join(parts)


def _contents() -> str:
    rows = [
        f"| {subject} | {', '.join(f'[`{n}`](#{n.lower()})' for n in names)} |" for subject, names in SUBJECTS.items()
    ]
    modules = ", ".join(f"[`{name}`](#untemplate{name})" for name in MODULES)
    return "\n".join(["| subject | names |", "| --- | --- |", *rows, f"| modules | {modules} |", ""])


def _described(name: str, thing: Any, level: int) -> str:
    """Return the section of a class or function, and of the public methods of a class; `MessageParser` has none."""
    parts = ["#" * level + f" `{name}`", ""]
    if inspect.isroutine(thing):
        parts += ["```text", _call(name.rpartition(".")[2], _signature(thing)), "```", ""]
    text = inspect.cleandoc(thing.__doc__ or "")
    parts += [_as_markdown(text), ""]
    if inspect.isclass(thing):
        members = {**vars(MessageParser), **vars(thing)} if issubclass(thing, MessageParser) else vars(thing)
        for method, found in members.items():
            bound = getattr(found, "__func__", found)
            if (
                not method.startswith("_")
                and (inspect.isfunction(bound) or isinstance(found, property))
                and bound.__doc__
            ):
                parts.append(_described(f"{name}.{method}", bound, level + 1))
    return "\n".join(parts)


def _signature(function: Any) -> str:
    """Return the parameters of a function, without ``self`` and ``cls``."""
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    return str(signature.replace(parameters=kept)).replace("'", "")


def _call(name: str, signature: str) -> str:
    """Return a signature, with a line for each parameter if it is long."""
    if len(name) + len(signature) <= _WIDTH:
        return name + signature
    parameters, _, result = signature.rpartition(")")
    depth, lines, start = 0, [], 1
    for at, c in enumerate(parameters):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 1:
            lines.append(parameters[start : at + 1].strip())
            start = at + 1
    lines.append(parameters[start:].strip())
    return "\n".join([f"{name}(", *(f"    {line}" for line in lines), f"){result}"])


def _narrow(block: str) -> str:
    """Return a block of text with its long lines wrapped. A line that is indented more goes on with the one before."""
    if block.startswith(">>>"):
        return block
    joined = re.sub(r"(?m)(?<=[^\n:])\n {8}(?=[^ *-])", " ", block)
    lines = []
    for line in joined.split("\n"):
        indent = line[: len(line) - len(line.lstrip())] + "    "
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_long_words=False) or [line]
    return "\n".join(lines)


def _as_markdown(text: str) -> str:
    """Return a docstring as Markdown: code in single backticks, examples and arguments as blocks."""
    text = re.sub(r":\w+:`~?([^`]+)`|``([^`]+)``", lambda found: f"`{found[1] or found[2]}`", text)
    # An indented block is code, and so is what follows "::".
    text = re.sub(
        r"(?m)(?:^::\n|::$)\n?((?:\n? {4}.*)+)", lambda found: f"\n~~~text\n{found[1].strip(chr(10))}\n~~~\n", text
    )
    lines = []
    for block in re.split(r"\n(?=(?:Args|Attributes|Returns|Raises|Yields):$|>>> )", text, flags=re.MULTILINE):
        head = block.partition("\n")[0]
        if block.startswith(">>>") or head in ("Args:", "Attributes:", "Returns:", "Raises:", "Yields:"):
            block, _, rest = block.partition("\n\n")
            lines.append(f"```text\n{_narrow(block.rstrip())}\n```\n")
            block = rest
        if block:
            lines.append(block.rstrip() + "\n")
    return "\n".join(lines)


def main() -> int:
    BUILT.mkdir(parents=True, exist_ok=True)
    (BUILT / "api.md").write_text(api_page(), "utf-8")
    (BUILT / "machine.md").write_text(machine_page(), "utf-8")
    (DOCS / "formats.md").write_text(formats_page(), "utf-8")
    (DOCS / "models-names.md").write_text(models_page(), "utf-8")
    (DOCS / "format.md").write_text(format_page(), "utf-8")
    (DOCS / "trainers.md").write_text(trainers_page(), "utf-8")
    made = {
        "meaning.md": with_policies,
        "settings.md": with_settings,
        "grammar.md": with_cells,
        "gateway-apis.md": with_fields,
        "diagnostics.md": with_diagnostics,
        "injected-text.md": with_quotations,
    }
    for name, renewed in made.items():
        page = DOCS / name
        page.write_text(renewed(page.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
