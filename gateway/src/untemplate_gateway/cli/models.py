"""``untemplate pull``, ``list``, ``show`` and ``rm``: models on disk.

``--json`` prints what people see as one JSON value; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from untemplate._internal.cli.common import UsageError, field, note, print_json, print_text, quiet, stdin, table
from untemplate._internal.terminal import coloured, painted, visible

if TYPE_CHECKING:
    from untemplate._internal.cli.arguments import Command

    from ..manager.checkpoint import Checkpoint

_PULL_DESCRIPTION: Final = """\
Fetches a model from the hub into huggingface_hub's cache. Of a GGUF repository one quantization is fetched: the one
that is named, else Q4_K_M or what comes next to it; of any other the safetensors with what belongs to them. What is
there already is not fetched again, and what was interrupted goes on where it stopped.
"""

_PULL_EPILOG: Final = """\
examples:
  untemplate pull unsloth/Qwen3-8B-GGUF               a quantization of medium size
  untemplate pull unsloth/Qwen3-8B-GGUF:Q8_0          this one
  untemplate pull Qwen/Qwen3-8B --revision main

HF_TOKEN opens private and gated repositories, HF_HOME says where the cache is, HF_ENDPOINT where the hub is.
"""

_LIST_DESCRIPTION: Final = """\
Lists the models in huggingface_hub's cache, whoever has fetched them: their size, when they were last used, and which
format their outputs are in (--fast leaves that out: each template is analysed for it once, and remembered).
"""

_LIST_EPILOG: Final = """\
examples:
  untemplate list
  untemplate list --fast --json
"""

_SHOW_DESCRIPTION: Final = """\
Shows a model: what it is, what it can do and how that is known, whether it would load and fit, and how its chat
template begins. MODEL is a name of `untemplate list`, a GGUF file or a folder.
"""

_SHOW_EPILOG: Final = """\
examples:
  untemplate show unsloth/Qwen3-8B-GGUF:Q4_K_M
  untemplate show ./my-model --template
"""

_RM_DESCRIPTION: Final = """\
Deletes models from huggingface_hub's cache, whoever has fetched them. MODEL is a name of `untemplate list`, or org/repo
for all of a repository.
"""

_RM_EPILOG: Final = """\
examples:
  untemplate rm unsloth/Qwen3-8B-GGUF:Q8_0
  untemplate rm unsloth/Qwen3-8B-GGUF --yes
"""

_HEAD: Final = 12
"""Lines of a template to show."""


def add_commands(command: Command) -> None:
    pull = command("pull", "download a model from the hub", _PULL_DESCRIPTION, _PULL_EPILOG)
    pull.set_defaults(run=_pull)
    pull.add_argument("model", metavar="ORG/REPO[:QUANTIZATION|:FILE]", help="model to download")
    pull.add_argument("--revision", metavar="NAME", help="branch, tag or commit (default: main)")
    pull.add_argument("--json", action="store_true", help="print one JSON object and no progress")

    listed = command("list", "the models on disk", _LIST_DESCRIPTION, _LIST_EPILOG)
    listed.set_defaults(run=_list)
    listed.add_argument("--fast", action="store_true", help="leave out the formats")
    listed.add_argument("--json", action="store_true", help="as a JSON list")

    show = command("show", "show a model: details, abilities, memory", _SHOW_DESCRIPTION, _SHOW_EPILOG)
    show.set_defaults(run=_show)
    show.add_argument("model", metavar="MODEL", help="which one")
    show.add_argument("--template", action="store_true", help="print only the chat template")
    show.add_argument("--json", action="store_true", help="one JSON object")

    rm = command("rm", "delete a model from the cache", _RM_DESCRIPTION, _RM_EPILOG)
    rm.set_defaults(run=_rm)
    rm.add_argument("model", nargs="+", metavar="MODEL", help="which ones")
    rm.add_argument("--yes", action="store_true", help="do not ask")
    rm.add_argument("--json", action="store_true", help="print one JSON object (needs --yes)")


# -- pull ---------------------------------------------------------------------------------------------------------


def _pull(arguments: argparse.Namespace) -> None:
    from ..manager import hub
    from ..manager.checkpoint import size_text

    as_json: bool = arguments.json
    try:
        plan = hub.plan(arguments.model, revision=arguments.revision)
        if not as_json:
            note(f"{plan.repo}: {len(plan.files)} files, {size_text(plan.size)}")
        checkpoint = hub.pull(plan, quiet=as_json)
    except hub.HubError as error:
        raise UsageError(str(error)) from None
    if as_json:
        print_json({"name": checkpoint.name, **checkpoint.details()}, indent=2)
        return
    print_text(f"{visible(checkpoint.name)} is at {visible(str(checkpoint.path))}")
    print_text(f"serve it: untemplate serve {visible(checkpoint.name)}")


# -- list ---------------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> None:
    from ..manager import hub
    from ..manager.checkpoint import size_text

    rows: list[tuple[str, ...]] = []
    values: list[dict[str, Any]] = []
    for checkpoint in hub.cached():
        used, parser = checkpoint.last_used, "" if arguments.fast else _format_of(checkpoint)
        values.append(
            {
                "name": checkpoint.name,
                "size": checkpoint.size,
                "format": checkpoint.kind,
                "parser": parser or None,
                "last_used": int(used),
                "path": str(checkpoint.path),
            }
        )
        rows.append((checkpoint.name, size_text(checkpoint.size), checkpoint.kind, parser, _ago(time.time() - used)))
    if arguments.json:
        print_json(values, indent=2)
        return
    if not rows:
        print_text(f"no models in {hub.cache_folder()}; `untemplate pull ORG/REPO` fetches one")
        return
    print_text(table(("NAME", "SIZE", "FORMAT", "PARSER", "LAST USED"), rows))


def _format_of(checkpoint: Checkpoint) -> str:
    """Return the name of the format of its outputs; empty if that is unknown."""
    from untemplate.templates import ChatTemplate, TemplateError

    from ..manager.capabilities import model_type_of
    from ..manager.checkpoint import CheckpointError
    from ..manager.choices import choose_format
    from ..settings import Settings

    try:
        template = ChatTemplate.load(checkpoint.path)
        kind = model_type_of(checkpoint, checkpoint.config)
        with quiet():
            chosen = choose_format(Settings(), template, identifier=checkpoint.repo or checkpoint.name, model_type=kind)
    except (TemplateError, CheckpointError):
        return ""
    return chosen.chosen.name


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count:
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    return "just now"


# -- show ---------------------------------------------------------------------------------------------------------


def _show(arguments: argparse.Namespace) -> None:
    from ..manager.capabilities import detect_capabilities
    from ..manager.checkpoint import CheckpointError
    from ..manager.preflight import preflight

    checkpoint = _named(arguments.model)
    try:
        with quiet():
            found = detect_capabilities(checkpoint)
            details = checkpoint.details()
    except CheckpointError as error:
        raise UsageError(str(error)) from None
    if arguments.template:
        if found.chat_template is None:
            raise UsageError(f"{checkpoint.name} has no chat template")
        print_text(visible(found.chat_template))
        return
    checked = preflight(checkpoint)
    if arguments.json:
        print_json(
            {
                "name": checkpoint.name,
                **details,
                "capabilities": found.to_dict(),
                "preflight": checked.to_dict(),
                "chat_template": found.chat_template,
            },
            indent=2,
        )
        return
    _print(checkpoint, details, found, checked)


def _print(checkpoint: Checkpoint, details: dict[str, Any], found: Any, checked: Any) -> None:
    from ..manager.checkpoint import count_text, size_text

    colour = coloured(sys.stdout)
    parameters = details["parameters"]
    facts = {
        "family": found.family,
        "weights": " ".join(x for x in (details["format"], details["quantization"], size_text(details["size"])) if x),
        "parameters": count_text(parameters) if parameters else "",
        "context": "" if not details["context_length"] else f"{details['context_length']} tokens",
        "thinking": _thinking(found),
        "tools": f"yes ({found.tool_call_parser})" if found.supports_tools else "no",
        "path": details["path"],
    }
    blocks = [
        "\n".join(
            [
                painted([(visible(checkpoint.name), "name")], colour=colour),
                *(field(label, visible(text), colour, size=12) for label, text in facts.items() if text),
            ]
        ),
        _block("How that is known:", [field("-", visible(s), colour, size=2) for s in found.evidence], colour),
        _block(
            f"Would it load: {_VERDICTS[checked.verdict]}",
            [
                field(c.name, ("" if c.verdict == "ok" else f"{c.verdict}: ") + visible(c.detail), colour, size=15)
                for c in checked.checks
            ],
            colour,
        ),
    ]
    if found.chat_template is not None:
        lines = visible(found.chat_template).split("\n")
        shown = [f"  {line}" for line in lines[:_HEAD]]
        if len(lines) > _HEAD:
            shown.append(painted([(f"  ... {len(lines) - _HEAD} more lines (--template)", "faint")], colour=colour))
        blocks.append(_block("Its chat template:", shown, colour))
    print_text("\n\n".join(blocks))


_VERDICTS: Final = {"ok": "yes", "warning": "perhaps", "error": "no"}


def _thinking(found: Any) -> str:
    if not found.supports_thinking:
        return "no"
    default = "by default" if found.default_enable_thinking else "on request"
    return f"yes, {default} ({found.reasoning_parser})"


def _block(title: str, lines: list[str], colour: bool) -> str:
    return "\n".join([painted([(title, "title")], colour=colour), *lines])


def _named(name: str) -> Checkpoint:
    """Find a model on disk by its name."""
    from ..manager import hub
    from ..manager.checkpoint import CheckpointError, open_checkpoint

    try:
        if not hub.is_hub_name(name):
            return open_checkpoint(name)
        found = hub.find(name)
    except (CheckpointError, hub.HubError) as error:
        raise UsageError(str(error)) from None
    if found is None:
        raise UsageError(f"{name} is not on disk; `untemplate pull {name}` fetches it, `untemplate list` lists what is")
    return found


# -- rm -----------------------------------------------------------------------------------------------------------


def _rm(arguments: argparse.Namespace) -> None:
    from ..manager import hub
    from ..manager.checkpoint import size_text

    if arguments.json and not arguments.yes:
        raise UsageError("--json needs --yes, since it cannot ask")
    wanted: dict[str, Checkpoint] = {}
    there = hub.cached()
    for name in arguments.model:
        found = [model for model in there if name in (model.name, model.repo)]
        if not found:
            raise UsageError(f"{name} is not in the cache; `untemplate list` lists what is")
        wanted |= {model.name: model for model in found}
    models = list(wanted.values())
    size = sum(model.size for model in models)
    if not arguments.yes:
        print_text("\n".join(f"{size_text(model.size):>10}  {visible(model.name)}" for model in models))
        if not _agreed(f"Delete {'this' if len(models) == 1 else 'these'} ({size_text(size)})? [y/N] "):
            raise UsageError("nothing was deleted")
    try:
        freed = hub.remove(models)
    except hub.HubError as error:
        raise UsageError(str(error)) from None
    if arguments.json:
        print_json({"deleted": [model.name for model in models], "freed": freed}, indent=2)
        return
    print_text(f"{size_text(freed)} freed")


def _agreed(question: str) -> bool:
    sys.stdout.write(question)
    sys.stdout.flush()
    return stdin().readline().strip().lower() in (b"y", b"yes")
