"""The documentation is correct: its examples run, its pages match the code, its links lead somewhere."""

from __future__ import annotations

import ast
import contextlib
import doctest
import gzip
import importlib
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import untemplate
from benchmarks.peers import failures
from tests.machine.test_phases import readers_with_phases
from untemplate._internal.cli.arguments import parser_for
from untemplate._internal.inspector.advice import LOST
from untemplate._internal.machine.diagnostics import DIAGNOSTICS
from untemplate._internal.machine.modes import MODES
from untemplate.errors import FormatError
from untemplate.format import _model as model
from untemplate.formats import _families as families
from untemplate.formats import _index, named, names
from untemplate.formats import _registered as registered
from untemplate.formats import _registry as registry
from untemplate.selection import suggested
from untemplate_gateway.protocols.openapi import document, requests
from untemplate_gateway.settings.sources import resolve

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^(```|~~~)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load(ROOT / "docs" / "generate.py", "generate")
pictures = load(ROOT / "docs" / "pictures.py", "pictures")
generate_index = load(ROOT / "docs" / "generate_index.py", "generate_index")


# -- examples -----------------------------------------------------------------------------------------------------


ELSEWHERE = {
    "CONTRIBUTING.md": "test_a_model_in_one_file",
    "docs/datasets.md": "make test-batch",
    "docs/frameworks.md": "make test-integrations",
    "docs/ray.md": "make test-batch",
    "docs/scaling.md": "make test-scaling makes the same call",
}
"""Pages whose Python needs packages of their own, or is a file, and what runs them."""
FRAGMENTS = {
    ("docs/ray.md", "py"): "needs a GPU and vLLM",
    ("docs/tokens.md", "py"): "examples/rollout_tokens.py runs it with a tokenizer and a template",
    ("docs/integrations.md", "yaml"): "files of other programs: make test-integrations",
}
"""Blocks that no test runs, with the reason. `py` is Python that does not run by itself; its syntax is checked."""
RUN = ("python", "pycon", "sh", "console", "javascript", "json", "toml")
SHOWN = ("", "text")
PYTHON = sorted(
    name
    for path in PAGES
    if (name := path.relative_to(ROOT).as_posix()) not in (*ELSEWHERE, "docs/check.md")
    and any(found[2] == "python" for found in BLOCK.finditer(path.read_text("utf-8")))
)


@pytest.mark.parametrize("name", PYTHON)
def test_python_blocks_print_what_follows_them(name: str, monkeypatch: pytest.MonkeyPatch):
    for kept in ("_entries", "_owners"):  # an example registers a format
        monkeypatch.setattr(registered, kept, dict(getattr(registered, kept)))
    blocks = [(found[2], found[3]) for found in BLOCK.finditer(page(name))]
    namespace: dict[str, Any] = {}
    ran = 0
    for i, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
        following = blocks[i + 1] if i + 1 < len(blocks) else ("", "")
        if following[0] == "text":
            assert printed.getvalue() == following[1]
        ran += 1
    assert ran


@pytest.mark.parametrize("name", ["docs/meaning.md", "docs/diagnostics.md"])
def test_sessions(name: str):
    result = doctest.testfile(str(ROOT / name), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted > 10


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_block_is_run_or_has_a_reason(path: Path):
    name = path.relative_to(ROOT).as_posix()
    for block in BLOCK.finditer(path.read_text("utf-8")):
        assert block[2] in (*RUN, *SHOWN) or (name, block[2]) in FRAGMENTS, block[2]
        if block[2] in ("json", "toml"):
            {"json": json.loads, "toml": tomllib.loads}[block[2]](block[3])
        elif block[2] == "py":
            compile(block[3], name, "exec")


def test_the_python_that_checks_a_server_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (code,) = [found[3] for found in BLOCK.finditer(page("docs/check.md")) if found[2] == "python"]
    with serving("untemplate serve replay:hermes --name hermes --replay-speed 0", tmp_path) as address:
        exec(compile(code.replace("http://localhost:8000", address), "docs/check.md", "exec"), {})
    assert capsys.readouterr().out == "0 []\n"


# -- commands -----------------------------------------------------------------------------------------------------

NOT_RUN = {
    r"jq ": "needs the program jq",
    r"eval \"|register-python-argcomplete": "needs the extra completion, and an interactive shell",
    r"make docs$": "the tests of this file compare its pages",
    r"make (?:test-canitoolcall|bench-peers-install)$": "fetches packages",
    r"python -m benchmarks\.peers\.failures": "needs the environments of the peers (`make bench-peers-install`)",
    r"pip install|export VERL": "changes the environment",
    r"vllm serve|sglang serve|python -m untemplate\.integrations\.sglang|python -m verl": "needs a GPU and the engine",
    r"python -m untemplate\.integrations\.bfcl": "needs the package and a server: make test-integrations",
    r"python benchmarks/parity.py": "needs reports of the other servers; test_benchmarks.py runs it",
    r"inspect eval": "needs inspect-ai and an engine: make test-integrations",
    r"untemplate serve (?:org/repo|Qwen/)": "downloads from the hub",
    r"untemplate (?:pull|show|rm) ": "downloads from the hub; test_cli_models.py runs them with a fake hub",
    r"untemplate serve smollm2": "needs the package of the model: make test-smollm",
    r"untemplate serve demo": "test_demo_model.py serves it",
    r'untemplate serve ORG/MODEL --upstream "\$URL"': "needs another server; gateway/gateway_tests/engines runs it",
    r"untemplate check --base-url https://host": "needs an account",
    r"\.venv/bin/": "test_a_family_is_added_by_one_file_and_the_generator",
}
"""Commands that are not run here, by their beginning, with the reason. Their options are checked against the parser."""
OUTPUT = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
TEMPLATE = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def shell_commands(text: str) -> list[tuple[str, str | None]]:
    """Return (command, what the page shows of its output) of every block of commands."""
    found: list[tuple[str, str | None]] = []
    for block in BLOCK.finditer(text):
        code = block[3].replace("\\\n", " ")
        if block[2] == "console":
            found += [
                (c, shown or None) for c, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE)
            ]
        elif block[2] in ("sh", "bash"):
            found += [(line, None) for line in code.splitlines() if line.strip()]
    return [(re.sub(r" +#.*$", "", command).strip(), shown) for command, shown in found]


COMMANDS = {path.relative_to(ROOT).as_posix(): shell_commands(path.read_text("utf-8")) for path in PAGES}
COMMANDS = {name: commands for name, commands in COMMANDS.items() if commands}


def reason_not_to_run(command: str) -> str | None:
    return next((reason for start, reason in NOT_RUN.items() if re.match(start, command)), None)


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "PYTHONIOENCODING": "utf-8", "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write the files that the pages take for granted. Return their folder."""
    rows = [{"id": n, "output": text} for n, text in enumerate([OUTPUT, OUTPUT, f"{OUTPUT}</tool_call>"])]
    (tmp_path / "output.txt").write_text(OUTPUT, "utf-8")
    (tmp_path / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with gzip.open(tmp_path / "outputs.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    model = tmp_path / "my-model"
    model.mkdir()
    (model / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    (model / "config.json").write_text('{"model_type": "qwen2"}', "utf-8")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(model / "tokenizer.json"))
    ids = {"completion_ids": tokenizer.encode("Hi.").ids}
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(ids) + "\n", "utf-8")
    shutil.copy(ROOT / "examples" / "conform_parser.py", tmp_path)
    model_file = ROOT / "demo" / "src" / "untemplate_demo" / "untemplate-demo.gguf"
    if model_file.exists():  # not in a source distribution
        shutil.copy(model_file, tmp_path / "model.gguf")
    return tmp_path


@contextlib.contextmanager
def serving(command: str, folder: Path) -> Iterator[str]:
    """Run a command that serves, on any free port. Yield its address; it must end by itself when it is asked to."""
    command = re.sub(r" --port \d+", "", command) + " --port 0"
    with subprocess.Popen(
        shlex.split(command), cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"(?:serves|inspects) on (http://[\d.:]+)", line):
                # A full pipe would stop the server: it logs a line for each request.
                rest = threading.Thread(target=process.stdout.read)
                rest.start()
                yield found[1]
                process.terminate()  # SIGINT is ignored where a shell runs the tests in the background
                break
        else:
            pytest.fail("".join(lines))
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            rest.join()
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_of_a_page_run(name: str, files: Path):
    """In order, in one folder, since a command may use what another wrote. The output is what the page shows of it."""
    for command, shown in COMMANDS[name]:
        if reason_not_to_run(command) is not None:
            continue
        if re.match(r"untemplate (?:serve|inspect)\b", command):
            with serving(command, files) as address:
                assert httpx.get(f"{address}/inspect/", timeout=60).status_code == 200
            continue
        with contextlib.ExitStack() as stack:
            if "http://localhost" in command:
                server = "untemplate serve replay:hermes+qwen3 --name hermes --replay-speed 0"
                address = stack.enter_context(serving(server, files))
                command = re.sub(r"http://localhost:\d+", address, command)
            done = subprocess.run(
                command, shell=True, capture_output=True, cwd=files, env=environment(), check=False, encoding="utf-8"
            )
        assert done.returncode == 0, (command, done.stderr)
        if shown is not None:
            assert (done.stdout, done.stderr) == (shown, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_parser_takes_the_commands_of_a_page(name: str, monkeypatch: pytest.MonkeyPatch):
    """Run or not, every `untemplate` command is one that the command line takes."""
    monkeypatch.setenv("URL", "http://localhost:8001/v1")
    for command, _ in COMMANDS[name]:
        command = command.removeprefix(".venv/bin/")
        if command.startswith("untemplate "):
            words = [os.path.expandvars(word) for word in shlex.split(re.split(r" [|>] ", command)[0])]
            parser_for(words[1:]).parse_args(words[1:])


def test_every_reason_not_to_run_a_command_is_used():
    listed = [command for commands in COMMANDS.values() for command, _ in commands]
    unused = [start for start in NOT_RUN if not any(re.match(start, command) for command in listed)]
    assert unused == []


# -- pages that are made from the code ----------------------------------------------------------------------------


def test_the_index_of_the_catalogue_is_in_step():
    made = generate_index.index_module(generate_index.families())
    assert (PACKAGE / "formats" / "_index.py").read_text("utf-8") == made, "run `make docs`"


def test_formats_are_in_step():
    assert page("docs/formats.md") == generate.formats_page(), "run `make docs`"


def test_names_by_model_are_in_step_and_valid():
    assert page("docs/models-names.md") == generate.models_page(), "run `make docs`"
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", page("docs/models-names.md"), re.MULTILINE)
    assert len(rows) > 100
    for pattern, name in rows:
        _, fmt, _ = next(suggested(pattern.replace("*", ""), None))
        assert named(name).extend(name=fmt.name) == fmt, pattern


def test_trainers_are_in_step():
    assert page("docs/trainers.md") == generate.trainers_page(), "run `make docs`"


def test_the_fields_of_a_format_are_in_step():
    assert page("docs/format.md") == generate.format_page(), "run `make docs`"


def test_every_class_of_a_format_is_on_the_page():
    classes = {name for name, cls in vars(model).items() if is_dataclass(cls)}
    assert classes - {"FormatFields"} == {part.__name__ for part in generate.PARTS}


@pytest.mark.skipif(untemplate.COMPILED, reason="compiled classes have no docstrings")
def test_the_api_has_every_public_name():
    made = generate.api_page()
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", made)):
        file, _, anchor = target.partition("#")
        assert (ROOT / "docs" / file).exists() if file else anchor in anchors(made), target
    for name in untemplate.__all__:
        assert f"## `{name}`" in made or name == "__version__", name
    public = {*re.findall(r"`untemplate\.(\w+)`", page("CHANGELOG.md").partition("## 0.1.0")[0])}
    assert {*generate.MODULES, "format", "integrations"} == public - {"__all__"}


def test_the_page_of_the_machine_has_its_modes_and_the_phases_of_its_readers():
    made = generate.machine_page()
    assert all(f"| {name} | {reader} | {reads} |" in made for name, reader, reads, _ in MODES.values())
    assert all(f"| {reader} | {', '.join(phases)} |" in made for reader, phases in readers_with_phases().items())


@pytest.mark.parametrize("name", pictures.DRAWN)
def test_a_picture_is_in_step_and_readable(name: str):
    """A picture has a text for readers who do not see it, and colours for both schemes. It loads and runs nothing."""
    made = pictures.DRAWN[name]()
    assert page(f"docs/pictures/{name}.svg") == made, "run `make docs`"
    root = ElementTree.fromstring(made)
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("aria-labelledby") == "t d"
    assert all(len(root.findtext(f"{space}{tag}") or "") > 10 for tag in ("title", "desc"))
    assert "prefers-color-scheme:dark" in (root.findtext(f"{space}style") or "")
    assert {element.tag.removeprefix(space) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text", "polyline",
    }  # fmt: skip
    texts = (generate.machine_page(), *(path.read_text("utf-8") for path in PAGES))
    assert any(f"pictures/{name}.svg)" in text for text in texts), "no page shows it"


def test_every_name_is_on_the_page():
    listed = set(re.findall(r"`([^`\n]+)`", page("docs/formats.md")))
    assert set(names()) <= listed


def test_policies_are_in_step():
    assert page("docs/meaning.md") == generate.with_policies(page("docs/meaning.md")), "run `make docs`"


def test_the_settings():
    assert page("docs/settings.md") == generate.with_settings(page("docs/settings.md")), "run `make docs`"


def test_the_table_of_fields_is_in_step_with_the_requests():
    assert page("docs/gateway-apis.md") == generate.with_fields(page("docs/gateway-apis.md")), "run `make docs`"


def test_the_table_of_fields_and_the_openapi_document_have_every_field():
    schemas = document("0")["components"]["schemas"]
    table = generate.fields_tables()
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    listed = {(row[0].strip("| `"), path.strip("` ,|")) for row in rows for path in row[-1].split(", ")}
    for line in table.splitlines():
        if line.startswith("* "):
            path, _, names = line[2:].partition(": ")
            listed |= {(name.strip("` "), path.strip("`")) for name in names.split(", ")}
    for path, kind in requests().items():
        read = set(kind.__struct_encode_fields__)
        assert set(schemas[kind.__name__]["properties"]) == read
        assert {name for name, place in listed if place == path and "." not in name} == read


def test_the_settings_file_that_is_shown(tmp_path: Path):
    (found,) = [block[3] for block in BLOCK.finditer(page("docs/settings.md")) if block[2] == "toml"]
    (tmp_path / "u.toml").write_text(found.replace('api_keys_file = "/run/secrets/untemplate-keys"\n', ""))
    held = resolve(file=tmp_path / "u.toml", environ={}).settings
    assert (held.llamacpp.n_ctx, held.output_policy().unknown_tools) == (16384, "drop")


def test_the_table_of_failures_has_the_figures_of_untemplate():
    """The columns of the peers are measured in environments of their own; ours is measured here."""
    rows = [line for line in page("docs/why.md").partition(failures.MARKS[0])[2].splitlines()[2:] if line[:3] != "<!-"]
    for row, (number, title, *_) in zip(rows, failures.FAILURES, strict=False):
        found = failures.judged(failures.ours, number)
        assert (found["wrong"], found["right"]) == (0, True)
        cells = row.strip("| ").split(" | ")
        assert (cells[0], cells[-1]) == (f"{number}: {title}", f"0/{found['cuts']}, right")


def test_pages_agree_on_the_public_suite():
    passed = re.findall(r"\| (\d+) of 469 \| (\d+) \|", page("docs/conformance.md"))
    assert passed == re.findall(r"^\| untemplate .* \| 469 \| (\d+) \| (\d+) \|", page("docs/why.md"), re.MULTILINE)
    told = " ".join(page("README.md").split())
    assert f"untemplate {passed[0][0]} and {passed[0][1]}, by the suite's rules" in told


def test_tested_grammars_are_in_step():
    assert page("docs/grammar.md") == generate.with_cells(page("docs/grammar.md")), "run `make docs`"


def test_every_diagnostic_has_an_example():
    sections = re.split(r"^## ", page("docs/diagnostics.md"), flags=re.MULTILINE)[1:]
    titles = [section.split("\n", 1)[0] for section in sections]
    assert titles == sorted(DIAGNOSTICS)
    for title, section in zip(titles, sections, strict=True):
        assert f"('{title}', " in section, title


def test_the_table_of_diagnostics_is_in_step():
    assert page("docs/diagnostics.md") == generate.with_diagnostics(page("docs/diagnostics.md")), "run `make docs`"
    assert set(LOST) < set(DIAGNOSTICS)


# -- names in the prose -------------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "untemplate"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def defined(path: Path) -> set[str]:
    """Return the classes, functions, methods, constants and documented fields of a file."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | FUNCTION):
            found.add(node.name)
        if isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, FUNCTION)}
            found |= {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    return found


def found(file: str) -> Path:
    """Return the path of a file that the page names: in the library, its inside, its catalogue, or the gateway."""
    folders = (PACKAGE, PACKAGE / "_internal", PACKAGE / "formats/_families", ROOT / "gateway/src/untemplate_gateway")
    return next((folder / file for folder in folders if (folder / file).exists()), PACKAGE / file)


def test_the_architecture_names_what_is_there():
    """Each step names a file, and every name before it is defined in that file (once is enough)."""
    text = BLOCK.sub("", page("docs/architecture.md")).partition("## The rest")[0]
    known: set[str] = set()
    files = set(re.findall(r"`([\w/]+\.py)`", text))
    for file in files:
        path = found(file)
        assert path.exists(), file
        known |= defined(path)
    named = set(re.findall(r"`([A-Z]\w+(?:\.\w+)?|\w+_\w+|start|merge|named)`", text))
    missing = {name for name in named if name not in known}
    assert missing == set()
    for name, file in re.findall(r"`([A-Z]?\w+(?:\.\w+)?)` \(`([\w/]+\.py)`\)", text):
        assert name in defined(found(file)), f"{name} is not in {file}"


def test_the_map_is_whole():
    listed = page("docs/architecture.md")
    for path in (*PACKAGE.iterdir(), *(PACKAGE / "_internal").iterdir()):
        if path.is_dir() and not path.name.startswith("_"):
            assert f"`{path.name}/`" in listed, path.name
        elif path.suffix == ".py" and not path.name.startswith("_"):
            assert f"`{path.name}`" in listed, path.name


# -- links --------------------------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of headings."""
    without_code = BLOCK.sub("", text)
    heads = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", path.read_text("utf-8"))):
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text("utf-8")), target


def test_the_site_has_every_page_once():
    """The navigation of the site lists all pages, and no others. Three of the root are on it."""
    nav = page("mkdocs.yml").partition("\nnav:\n")[2]
    listed = re.findall(r": ([\w-]+\.md)$", nav, re.MULTILINE)
    root = ["changelog.md", "contributing.md", "security.md"]
    assert sorted(listed) == sorted(
        [*root, "api.md", "machine.md", *(path.name for path in (ROOT / "docs").glob("*.md"))]
    )


def test_each_page_of_the_site_has_a_description_of_its_own():
    previews = load(ROOT / "docs/site_previews.py", "site_previews")
    texts = {path.name: previews.description_of(path.read_text("utf-8")) for path in (ROOT / "docs").glob("*.md")}
    short = {name: text for name, text in texts.items() if not 40 <= len(text) <= 200}
    assert short == {}
    assert len(set(texts.values())) == len(texts)
    assert not re.search(r"[`|<\[]", "".join(texts.values()))
    tags = previews.tags('A "page"', "Text.", "https://example.org/a/", "../previews/a.png")
    assert '<meta property="og:title" content="A &quot;page&quot;">\n' in tags
    assert '<meta property="og:image" content="../previews/a.png">\n' in tags


def test_the_site_links_to_cases_of_the_inspector() -> None:
    cases = load(ROOT / "docs/site_cases.py", "site_cases")
    known = cases.examples()
    for name, kind, least in (
        ("diagnostics", "diagnostic", 34),
        ("failure-modes", "failure", 16),
        ("formats", "format", 70),
    ):
        linked = cases.with_cases(f"{name}.md", page(f"docs/{name}.md"), known)
        found = set(re.findall(rf'href="\.\./inspector/#example={kind}/([^"]+)"', linked))
        assert len(found) >= least, name
        assert {f"{kind}/{one}" for one in found} <= known
    assert '<a href="../inspector/">' in cases.with_cases("inspect.md", page("docs/inspect.md"), known)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_picture_is_a_picture_with_a_description(path: Path):
    for text, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", path.read_text("utf-8")):
        assert len(text) > 10
        assert (path.parent / target).read_bytes()[:4] in (b"\x89PNG", b"RIFF") or target.endswith(".svg")


def targets_of(makefile: str) -> set[str]:
    return {*re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_make_targets_exist(path: Path):
    named = re.findall(r"(?:`|^\$ |^)make ([a-z-]+)", path.read_text("utf-8"), re.MULTILINE)
    assert {*named} - targets_of(page("Makefile")) == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_hold_no_conflict_markers(path: Path):
    assert re.findall(r"^(?:<<<<<<<|>>>>>>>|=======)(?: .*)?$", path.read_text("utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_name_no_machine(path: Path):
    text = path.read_text("utf-8")
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: |$)", text, re.MULTILINE) == []
    assert re.findall(r"/(?:home|root|work|tmp|Users)/\S*|\bindex-url\b", text) == []
    # Hosts of examples have no dot.
    assert [url for url in re.findall(r"https?://([^/\s:\"`)]+)", text) if "." in url and url != "127.0.0.1"] == []


# -- CONTRIBUTING: a model in one file ----------------------------------------------------------------------------


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Add the worked example to the catalogue, as the generated index does. Yield its blocks of code."""
    blocks = [found[3] for found in BLOCK.finditer(page("CONTRIBUTING.md")) if found[2] == "python"]
    assert len(blocks) == 2
    path = tmp_path / "acme.py"
    path.write_text(blocks[0], "utf-8")
    module = load(path, "untemplate.formats._families.acme")
    monkeypatch.setitem(sys.modules, "untemplate.formats._families.acme", module)
    index: dict[str, Any] = {}
    exec(generate_index.index_module({**generate_index.families(), "acme": module.ENTRIES}), index)
    monkeypatch.setattr(_index, "ROWS", index["ROWS"])
    caches = (registry._bundled, registry._modules, registry._respelled, registry._load)
    for cached in caches:
        cached.cache_clear()
    yield blocks
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def test_an_index_that_is_out_of_date_names_the_command(acme: list[str], monkeypatch: pytest.MonkeyPatch):
    kept = [one for one in registry._load("acme").values() if one.name != "acme"]
    monkeypatch.setattr(sys.modules["untemplate.formats._families.acme"], "ENTRIES", tuple(kept))
    registry._load.cache_clear()
    with pytest.raises(
        ValueError, match=r"^no (tool|reasoning) format 'acme': _families/acme\.py does not have it any more"
    ):
        named("acme")
    rows = {name: group for name, group in _index.ROWS.items() if name != "hermes"}
    monkeypatch.setattr(_index, "ROWS", rows)
    for cached in (registry._bundled, registry._modules, registry._respelled, registry._load):
        cached.cache_clear()
    with pytest.raises(
        ValueError, match=r"^no format 'hermes': _families/hermes\.py is not in the index; `make docs` adds it$"
    ):
        named("hermes")


def test_a_name_belongs_to_one_entry_of_the_index():
    found = generate_index.families()
    entry = found["hermes"][0]
    for changed, wrong in (
        (replace(entry, aliases=("mistral",)), r"Entry 'mistral' of .+ has the tool name 'mistral' as well$"),
        (replace(entry, aliases=("hermes",)), r"aliases: Entry 'hermes' of acme has the tool name 'hermes' as well$"),
        (replace(entry, aliases=("Mistral",)), r"Entry 'mistral' of .+ has the tool name 'mistral' as well$"),
        (
            replace(entry, model_types=("mixtral",)),
            r"^acme: Entry 'hermes': model_types: 'mixtral' is a model type of Entry 'mistral' of mistral$",
        ),
        (replace(entry, aliases=("a b",)), r"^acme: Entry 'hermes': aliases: 'a b': a name must not be empty, contain"),
        (replace(entry, evidence=()), r"evidence: expected at least one source, or verified=False$"),
    ):
        others = {name: group for name, group in found.items() if name != "hermes"}
        with pytest.raises(FormatError, match=wrong):
            generate_index.check({**others, "acme": (changed,)})
    with pytest.raises(
        FormatError, match=r"^acme: ENTRIES: expected a tuple of Entry, such as \(Entry\(…\),\), got Entry"
    ):
        generate_index.check({"acme": entry})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ENTRIES = (", "ENTRY = (", r"^wrong: ENTRIES: is missing: a family has a tuple of Entry$"),
        (', close=Marker("\\n[[/think]]\\n\\n")', "", r"^wrong\.py, line 16: Reasoning\.close: is missing$"),
        (
            'Evidence("template"',
            'Evidence("tmplate"',
            r"^wrong\.py, line 34: Evidence 'acme/Acme-1-8B chat_template\.jinja': kind: expected one of 'template', "
            r"'engine', 'report', got 'tmplate'$",
        ),
        (
            'special_tokens=("<|acme_end|>",)',
            'special_tokens=("<|acme_end|>")',
            r"^wrong\.py, line 20: special_tokens: expected a tuple of texts, such as \('<\|acme_end\|>',\), "
            r"got '<\|acme_end\|>'$",
        ),
    ],
)
def test_a_family_that_is_wrong_is_named(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    written = next(found[3] for found in BLOCK.finditer(page("CONTRIBUTING.md")) if found[2] == "python")
    assert old in written
    (tmp_path / "wrong.py").write_text(written.replace(old, new), "utf-8")
    monkeypatch.setattr(families, "__path__", [str(tmp_path)])
    with pytest.raises(FormatError, match=said):
        generate_index.entries(tmp_path / "wrong.py")
    sys.modules.pop("untemplate.formats._families.wrong", None)


def test_a_family_is_added_by_one_file_and_the_generator(acme: list[str], tmp_path: Path):
    copy = tmp_path / "src" / "untemplate"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (copy / "formats/_families/acme.py").write_text(acme[0], "utf-8")

    def python(*arguments: str) -> str:
        environ = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environ, check=True)
        return done.stdout.strip()

    assert python(str(ROOT / "docs" / "generate_index.py")) == ""
    code = "from untemplate.formats import named; fmt = named('acme'); print(fmt.reasoning.close.text.strip())"
    assert python("-c", code) == "[[/think]]"
    code = "from untemplate.selection import suggested; print(next(suggested('x', 'acme_v1'))[2])"
    assert python("-c", code) == "model type acme_v1"
    code = "from untemplate.formats import named; print('<|acme_assistant|>' in named('hermes').turn.start.accepted)"
    assert python("-c", code) == "True"
    (tmp_path / "output.txt").write_text("[[call f]]{}[[/call]]", "utf-8")
    assert "acme  tool format" in python("-m", "untemplate", "formats", "acme")
    shown = python("-m", "untemplate", "parse", "--format", "acme", "--explain", str(tmp_path / "output.txt"))
    assert shown.endswith("result  1 call: f (ok); finish_reason tool_calls")


def test_a_model_in_one_file(acme: list[str]):
    namespace: dict[str, Any] = {}
    exec(compile(acme[1], "CONTRIBUTING.md", "exec"), namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_model_in_one_file_writes_what_the_page_says(acme: list[str]):
    sample = next(found[3] for found in BLOCK.finditer(page("CONTRIBUTING.md")) if found[2] == "text")
    from untemplate import OutputParser

    parser = OutputParser.named("acme")
    assert parser.render(parser.parse(sample.rstrip("\n"))) == sample.rstrip("\n")


def test_the_model_in_one_file_passes_the_linter(acme: list[str]):
    ruff = Path(sys.executable).parent / "ruff"
    if not ruff.exists():
        pytest.skip("there is no ruff here")
    for block, where in ((acme[0], "src/untemplate/formats/_families/acme.py"), (acme[1], "tests/test_acme.py")):
        for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
            done = subprocess.run(
                [ruff, *command, "--stdin-filename", where, "-"], input=block, text=True, cwd=ROOT, check=False
            )
            assert done.returncode == 0


# -- the catalogue is importable as the pages say -----------------------------------------------------------------


def test_public_names_of_the_changelog_exist():
    text = page("CHANGELOG.md")
    for dotted in re.findall(r"`(untemplate\.[\w.]+)`", text):
        module, _, attribute = dotted.rpartition(".")
        assert (
            dotted == "untemplate.__all__"
            or hasattr(importlib.import_module(module), attribute)
            or (importlib.util.find_spec(dotted) is not None)
        ), dotted


def test_a_generated_table_has_no_empty_cell():
    assert generate.row("`a`", "b") == "| `a` | b |"
    with pytest.raises(ValueError, match=r"^a cell of a generated table is empty: \('`a`', ' '\)$"):
        generate.row("`a`", " ")
