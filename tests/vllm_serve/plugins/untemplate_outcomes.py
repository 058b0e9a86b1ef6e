"""A plugin of pytest for vLLM's own tests: no network, a tokenizer made here, outcomes in a file.

* Tokenizers of the hub are replaced by one of bytes whose special tokens are those of all Formats of the catalogue.
* ``UNTEMPLATE_OUTCOMES`` names the file: test → ``passed``, ``skipped``, ``untouched`` (no class of untemplate's was
  used), or the error.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

import pytest
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from untemplate.formats import named, names

outcomes: dict[str, str] = {}
all_redirected = False
redirected = False
"""True once a test has used a class of untemplate's. Fixtures of a module count for its first test only."""


@lru_cache
def tokenizer() -> Any:
    """Return a tokenizer with one token for each byte and each marker of the catalogue."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special = sorted({token for name in names() for token in named(name).special_tokens})
    words.add_tokens([AddedToken(token, normalized=False, special=False) for token in special])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|im_end|>")


def _made(*args: Any, **kwargs: Any) -> Any:
    return tokenizer()


def pytest_configure(config: pytest.Config) -> None:
    transformers.AutoTokenizer.from_pretrained = _made
    import vllm.tokenizers

    vllm.tokenizers.get_tokenizer = _made


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        outcomes[report.nodeid] = _line(report)


def pytest_runtest_setup() -> None:
    global redirected
    redirected = all_redirected


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Any:
    (yield).get_result().redirected = redirected


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        outcomes[report.nodeid] = "skipped"
    elif report.failed:
        outcomes[report.nodeid] = _line(report)
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, "passed")
    if report.when == "call" and not report.redirected:
        outcomes[report.nodeid] = "untouched"


def _line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    return text[:1000]


def pytest_sessionfinish() -> None:
    with open(os.environ["UNTEMPLATE_OUTCOMES"], "w", encoding="utf-8") as out:
        json.dump(outcomes, out, indent=1, ensure_ascii=False)
