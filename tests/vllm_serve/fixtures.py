"""Replay the fixtures of canitoolcall through the plugin and through vLLM's own parsers: `make test-vllm`.

usage: python -m tests.vllm_serve.fixtures [--record] [--show FIXTURE]

canitoolcall's adapter for vLLM calls what vLLM's server calls, with the parsers that the models' cards name. Here it
runs without the hub. The tokenizer of each model is made from the fixtures: one token for each part of an output that
one id stands for, as `tests/conformance/adapter.py` divides it. Its special tokens are tokens that vLLM's parsers find
by id. The prompt is the end that the fixture names.

gpt-oss is left out: vLLM's server reads it with a parser of its own, which needs an encoding from the network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import transformers
from canitoolcall.adapters import vllm as suite
from canitoolcall.adapters.base import ReplayInput, Support
from canitoolcall.adapters.worker import replay
from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParseResult, Status
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tests.conformance.adapter import NAMES, vocabulary
from tests.vllm_serve import suites
from untemplate import OutputParser
from untemplate._internal.tokens.decoding import BYTE_LEVEL
from untemplate.integrations.vllm import register

RECORDED: Final = Path(__file__).parent / "recorded" / "fixtures.json"
LEFT_OUT: Final = ("gpt-oss",)
_CHARACTERS: Final = {byte: character for character, byte in BYTE_LEVEL.items()}


def _token(text: str) -> str:
    return "".join(_CHARACTERS[byte] for byte in text.encode())


def outputs(repo: str) -> list[Fixture]:
    return [one for one in load_fixtures() if one.tokenizer is not None and one.tokenizer.repo == repo]


@cache
def special_tokens(repo: str) -> frozenset[str]:
    """Return the special tokens of the models with one tokenizer."""
    chosen = {one.reference_model for one in outputs(repo)}
    formats = [OutputParser.named(tools, reasoning=reasoning).format for tools, reasoning in map(NAMES.get, chosen)]
    return frozenset({token for fmt in formats for token in fmt.special_tokens} | set(vocabulary(repo).get_vocab()))


@cache
def pieces(repo: str) -> dict[str, list[str]]:
    """Return the parts of each output of one tokenizer: fixture → texts, one for each id.

    Where the fixtures do not reveal the id of a special token, all of its occurrences count as the token. One that they
    reveal counts where its text is not divided.
    """
    known = vocabulary(repo)
    revealed = known.get_vocab()
    pattern = re.compile("|".join(map(re.escape, sorted(special_tokens(repo), key=len, reverse=True))) or "(?!)")
    found = {}
    for fixture in outputs(repo):
        text = fixture.raw_output
        parts = known.pieces(text, fixture.output_token_ids or ())
        cuts = {0, *accumulate(map(len, parts))}
        for token in pattern.finditer(text):
            within = cuts & set(range(token.start() + 1, token.end()))
            if not within or token[0] not in revealed:
                cuts = (cuts - within) | {token.start(), token.end()}
        found[fixture.id] = [text[start:end] for start, end in pairwise(sorted(cuts))]
    return found


@cache
def tokenizer(repo: str) -> Any:
    """Return a tokenizer of one token for each part of an output, and one for each special token of the model."""
    special = special_tokens(repo)
    chosen = {one.reference_model for one in outputs(repo)}
    stops = {
        token
        for family in load_families().values()
        for model in family.reference_models
        if model.repo in chosen
        for token in model.stop_tokens
    }
    ids = {character: number for number, character in enumerate(sorted(BYTE_LEVEL))}
    for output in pieces(repo).values():
        for text in output:
            if text not in special:
                ids.setdefault(_token(text), len(ids))
    made = Tokenizer(models.BPE(vocab=ids, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in sorted(special - stops)])
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in sorted(stops)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=min(stops, default=None), clean_up_tokenization_spaces=False
    )


class VllmAdapter(suite.VllmAdapter):
    """vLLM's own parsers, with tokenizers made from the fixtures."""

    def supports(self, family: str, model: str) -> Support:
        return Support(False, "left out") if family in LEFT_OUT else super().supports(family, model)

    def parser_config(self, raw: ReplayInput) -> dict[str, Any]:
        return {}

    def units(self, raw: ReplayInput) -> list[int]:
        repo = self._tokenizer_pin(raw)[0]
        vocab, special = tokenizer(repo).get_vocab(), special_tokens(repo)
        return [vocab[text if text in special else _token(text)] for text in pieces(repo)[raw.fixture_id]]

    def special_token_ids(self, raw: ReplayInput) -> Collection[int]:
        repo = self._tokenizer_pin(raw)[0]
        vocab = tokenizer(repo).get_vocab()
        return {vocab[text] for text in special_tokens(repo)}

    def _model(self, raw: ReplayInput) -> Any:
        repo, revision = self._tokenizer_pin(raw)
        made = tokenizer(repo)
        return suite._Model(repo, revision, None, "auto", made, type(made).__name__, model_type=None, architectures=())

    def _template_info(self, model: Any) -> dict[str, Any]:
        return {}

    def _setup(self, raw: ReplayInput, tools: Sequence[Mapping[str, Any]]) -> Any:
        self._end = raw.generation_prompt or ""
        self._setups.clear()  # its key does not have the end of the prompt
        return super()._setup(raw, tools)

    def _request_and_parser(self, setup: Any, *, stream: bool) -> tuple[Any, Any]:
        """As the server of vLLM 0.32 does, tell the parser the prompt of a whole output too."""
        request, parser = super()._request_and_parser(setup, stream=stream)
        parser.set_prompt_token_ids(setup.prompt_ids)
        return request, parser

    def _render_prompt(self, setup: Any) -> list[int]:
        ids: list[int] = setup.model.tok.encode(self._end, add_special_tokens=False)
        return ids


class PluginAdapter(VllmAdapter):
    """untemplate's plugin in vLLM, with the names that `tests/conformance` uses."""

    def _setup(self, raw: ReplayInput, tools: Sequence[Mapping[str, Any]]) -> Any:
        setup = super()._setup(raw, tools)
        calls, reasoning = NAMES[raw.model]
        setup.parser_cls = suite._imp("vllm.parser.parser_manager").ParserManager.get_parser(
            tool_parser_name=f"untemplate:{calls}",
            reasoning_parser_name=f"untemplate:{reasoning}" if reasoning else None,
            enable_auto_tools=True,
        )
        return setup


def statuses(adapter: VllmAdapter) -> dict[str, tuple[str, str]]:
    """Return the status of each fixture, with the reason if it does not pass."""
    families = load_families()
    found = {}
    for fixture in load_fixtures():
        family = families[fixture.family]
        answer = replay(adapter, fixture, family, DEFAULT_STRATEGIES)
        if not answer["supported"]:
            continue
        streams = {name: ParseResult.from_dict(result) for name, result in answer["streams"].items()}
        rows = run_checks(fixture, family, Observation(ParseResult.from_dict(answer["nonstream"]), streams))
        status = case_status(rows)
        found[fixture.id] = (status.value, "" if status is Status.PASS else _reason(rows))
    return found


def _reason(rows: Sequence[CheckResult]) -> str:
    row = next(row for row in rows if row.status.value != "pass")
    return f"{row.check} ({row.strategy}): {' '.join(str(row.detail).split())}"[:300]


def right(status: str) -> bool:
    """True if a fixture passes, white space at the ends of texts aside."""
    return status in ("pass", "soft_pass")


def table(recorded: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """Return the table of the page, from fixture → plugin, vllm → status and difference."""
    counts: dict[str, Counter[str]] = {}
    for fixture, found in recorded.items():
        ours, theirs = (right(found[side][0]) for side in ("plugin", "vllm"))
        row = counts.setdefault(fixture.partition("/")[0], Counter())
        row["all"] += 1
        row["ours"] += ours
        row["theirs"] += theirs
        row["only ours" if ours and not theirs else "only theirs" if theirs and not ours else ""] += 1
    total = sum(counts.values(), Counter())
    lines = [
        "| family | fixtures | the plugin is right | vLLM's parser is right | only the plugin | only vLLM's |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for family, row in [*sorted(counts.items()), ("all", total)]:
        cells = [str(row[column]) for column in ("all", "ours", "theirs", "only ours", "only theirs")]
        lines.append(f"| {' | '.join([family, *cells])} |")
    only = [(fixture, found["plugin"][1]) for fixture, found in sorted(recorded.items())
            if right(found["vllm"][0]) and not right(found["plugin"][0])]  # fmt: skip
    lines += ["", "Only vLLM's parser is right:", ""]
    return [*lines, *(f"- `{fixture}`: {why.partition(': ')[2]}" for fixture, why in only)]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--record", action="store_true", help="record the results")
    given = options.parse_args()
    register()
    sides = {"plugin": statuses(PluginAdapter()), "vllm": statuses(VllmAdapter())}
    found = {fixture: {side: list(sides[side][fixture]) for side in sides} for fixture in sides["plugin"]}
    for side, results in sides.items():
        passed = Counter(status for status, _ in results.values())
        print(
            f"canitoolcall, {side}: {passed['pass']} of {len(results)} pass, {passed['soft_pass']} softly", flush=True
        )
    if given.record:
        RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        suites.PAGE.write_text(suites.page(), encoding="utf-8")
        return 0
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    lost = [name for name, one in found.items() if right(recorded[name]["plugin"][0]) and not right(one["plugin"][0])]
    for name in lost:
        print(f"no longer passes: {name}: {found[name]['plugin'][1]}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
