"""A chat template, tokenizers with it, tools and messages for the tests of several integrations."""

from __future__ import annotations

import importlib.metadata
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Certifies as Hermes with the reasoning of Qwen3."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "parameters": {
                "type": "object",
                "properties": {
                    "q": {"type": "string"},
                    "zip": {"type": "string"},
                    "limit": {"type": "integer"},
                    "deep": {"type": "object"},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}},
]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of a message."""
    return {"id": "", "type": "function", "function": {"name": name, "arguments": arguments}}


FIND = call("find", q="two words, and a comma", zip="04109", limit=3, deep={"on": [True, None]})
FLAT = call("find", q="two words, and a comma", limit=3)
TIME = call("time")
MESSAGES: list[dict[str, Any]] = [
    {"content": "Certainly: a < b, and {c}."},
    {"reasoning": "Look it up.\n\nThen answer.", "content": "One moment."},
    {"tool_calls": [FIND]},
    {"tool_calls": [TIME, FIND]},
    {"content": "One moment.", "tool_calls": [FIND, TIME]},
    {"reasoning": "Look it up.", "tool_calls": [FIND]},
    {"reasoning": "Look it up.", "content": "One moment.", "tool_calls": [FIND, TIME, FIND]},
    {"reasoning": "Look it up.", "content": "One moment.", "tool_calls": [FLAT, TIME, FLAT]},
    {"tool_calls": [FLAT]},
]


def tokenizer(*special: str) -> Any:
    """Return a byte-level tokenizer of transformers with the template. ``<|im_end|>`` is always special."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in ("<|im_end|>", *special)])
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>")
    made.chat_template = TEMPLATE
    return made


def modules_only(package: str, *names: str) -> None:
    """Let modules of an installed package be imported without running the ``__init__`` files of these packages.

    Such a file often imports the engine, which needs a GPU. Skips the tests if the package is not installed.
    """
    try:
        place = Path(str(importlib.metadata.distribution(package).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs {package}", allow_module_level=True)
    for name in names:
        module = ModuleType(name)
        module.__path__ = [str(place / name.replace(".", "/"))]
        sys.modules.setdefault(name, module)


def shows(name: str, capsys: pytest.CaptureFixture[str]) -> bool:
    """Run a file of ``examples/`` in this process; return whether it prints what the comment at its end promises."""
    text = (ROOT / "examples" / name).read_text("utf-8")
    capsys.readouterr()
    runpy.run_path(str(ROOT / "examples" / name))
    promised = text.partition("\n# Prints:\n")[2].replace("# ", "")
    return capsys.readouterr().out == promised


def wheel(folder: Path) -> Path:
    """Build untemplate's wheel in a folder, from a copy of the sources; return its file."""
    copy = folder / "untemplate"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(copy)], check=True)
    (file,) = folder.glob("*.whl")
    return file
