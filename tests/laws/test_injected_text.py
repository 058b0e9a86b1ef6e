"""Quoted calls do not run: how many of the quotations of each format are called.

The ceilings of each format are in ``tests/data/quoted_calls.json``. ``UNTEMPLATE_RECORD=1`` lowers those that fell and
adds new formats; it raises none.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import ClassVar, Final

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.backends.quotations import CONTEXTS, WRITERS, QuotedCalls, provable, quoted_calls, sample_of
from untemplate._internal.tokens.decoding import Vocabulary
from untemplate.format import Format
from untemplate.formats import entries

RECORDED: Final = Path(__file__).parents[1] / "data" / "quoted_calls.json"
CEILINGS: Final[dict[str, dict[str, int]]] = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
ALWAYS = ("prose", "lines of its own", "an unknown XML element")
"""Contexts in which nothing tells a quotation from a call."""
FENCES = ("a fence", "a fence with a language")
FORMATS = {entry.name: entry.format for entry in entries() if entry.kind == "tool"}
EVERY = pytest.mark.parametrize("name", FORMATS)


def measured(fmt: Format) -> QuotedCalls:
    found = quoted_calls(fmt)
    if found is None:
        pytest.skip("no call of this format can be written")
    return found


@EVERY
def test_quoted_calls(name: str) -> None:
    found = measured(FORMATS[name])
    assert set(found.without_ids) <= {*ALWAYS, *FENCES}
    assert set(found.silent) <= set(ALWAYS)
    assert set(found.with_ids) <= ({*ALWAYS, *FENCES} if found.provable != "yes" else set())


@EVERY
def test_no_ceiling_is_passed(name: str) -> None:
    found = measured(FORMATS[name])
    counts = {what: len(getattr(found, what)) for what in ("without_ids", "silent", "with_ids")}
    if os.environ.get("UNTEMPLATE_RECORD"):
        known = CEILINGS.get(name, counts)
        CEILINGS[name] = {what: min(count, known[what]) for what, count in counts.items()}
        RECORDED.write_text(json.dumps(CEILINGS, indent=1, sort_keys=True) + "\n", "utf-8")
    assert name in CEILINGS
    assert all(count <= CEILINGS[name][what] for what, count in counts.items()), (counts, CEILINGS[name])


def test_the_sums() -> None:
    """Of 13 contexts in each format, as many as ever were called; the law that text is no call."""
    found = [one for fmt in set(FORMATS.values()) if (one := quoted_calls(fmt)) is not None]
    assert sum(len(one.without_ids) for one in found) <= 5 * len(found)
    assert sum(len(one.silent) for one in found) <= 3 * len(found)
    assert all(not one.with_ids for one in found if one.provable == "yes")


WORDS = ("The page", "says", "1. Look:", "here", "a=b", "naïve 漢字", "", "(see below)", "- item", "* bold *", "end.")


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_other_words_around_a_quotation(name: str, seed: int) -> None:
    """What comes before the context and after it changes nothing in contexts that are evidence."""
    fmt = FORMATS[name]
    written = sample_of(fmt)
    if written is None:
        pytest.skip("no call of this format can be written")
    chosen = random.Random(f"{name}{seed}")
    before, call, after = written
    parser = OutputParser.from_format(fmt, policy=Policy(strict=False))
    for context, write in WRITERS.items():
        if context in (*ALWAYS, *FENCES, "a JSON string", "a JSON string without escapes"):
            continue  # structured output has no text around it
        words = [chosen.choice(WORDS) for _ in range(4)]
        text = f"{words[0]} {words[1]}\n\n{write(call)}\n\n{words[2]} {words[3]}"
        parsed = parser.parse(before + text + after)
        assert parsed.tool_calls == [], (context, text)


def test_where_a_token_proves_the_opener() -> None:
    by_provable = {
        what: sorted(name for name, fmt in FORMATS.items() if provable(fmt, frozenset(fmt.special_tokens)) == what)
        for what in ("yes", "no")
    }
    assert {"hermes", "mistral", "kimi_k3", "qwen3_coder"} <= set(by_provable["yes"])
    assert {"command_r_plus", "firefunction_v2", "functionary_v3.1"} <= set(by_provable["no"])


def test_the_contexts() -> None:
    assert len(CONTEXTS) == 13
    assert set(CONTEXTS) == set(WRITERS)


def test_the_tokens_of_the_vocabulary_count() -> None:
    fmt = FORMATS["olmo3"]
    without = quoted_calls(fmt, Vocabulary({"a": 0}))
    proven = quoted_calls(fmt, Vocabulary({"<function_calls>": 0}, added=["<function_calls>"]))
    assert without is not None
    assert proven is not None
    assert (without.provable, len(without.with_ids), without.of_model) == ("no", 5, True)
    assert (proven.provable, proven.with_ids) == ("yes", ())
    assert str(proven) == (
        "a call quoted in 13 ways runs in 5 of them (3 without a report); with its markers' token ids, in 0; "
        "ids prove its calls: yes (the model's tokens); see docs/injected-text.md"
    )
    assert proven.to_dict() == {
        "provable": "yes",
        "tokens": "model",
        "contexts": 13,
        "without_ids": ["prose", "lines of its own", "an unknown XML element", "a fence", "a fence with a language"],
        "silent": ["prose", "lines of its own", "an unknown XML element"],
        "with_ids": [],
    }


def test_the_policy_counts() -> None:
    fmt = FORMATS["hermes"]
    counts = [
        len(found.without_ids)
        for policy in ("call", "evidence", "content")
        if (found := quoted_calls(fmt, policy=Policy(quoted_calls=policy))) is not None  # type: ignore[arg-type]
    ]
    assert counts == [9, 5, 3]


def test_the_parser_and_the_certificate_have_the_measure() -> None:
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call>"
        "{{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>"
        "{% endif %}"
    )
    parser = OutputParser.from_template(template, cache=False)
    assert parser.certificate is not None
    found = parser.certificate.quoted_calls
    assert found is not None
    assert found == parser.quoted_calls
    assert parser.certificate.to_dict()["quoted_calls"] == found.to_dict()
    assert (found.provable, found.of_model, len(found.with_ids)) == ("yes", False, 0)

    class Tokenizer:
        """Its vocabulary has no ``<call>``."""

        added_tokens_decoder: ClassVar = {0: "<|end|>"}

        def get_vocab(self) -> dict[str, int]:
            return {"<|end|>": 0, "a": 1}

    other = OutputParser.from_template(template, cache=False, tokenizer=Tokenizer()).quoted_calls
    assert other is not None
    assert (other.provable, other.of_model, len(other.with_ids)) == ("no", True, 5)
    assert OutputParser.named("qwen3").quoted_calls is None
