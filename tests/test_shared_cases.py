"""The shared cases: outputs of models, and the messages that they mean. Every one must be right under every law.

The cases are facts about models and not part of this code: they are read from their folder, never copied. Without them
these tests are skipped.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.public import CASES, NO_CASES
from untemplate.testing import check

BELIEVED_WRONG: dict[str, str] = {
    "ollama/laguna/UserTagged": "<user> begins a turn of the user in this template. If it could also begin a call, an "
    "output that goes on as the user would call tools.",
}
"""Cases that we believe to be wrong, by id, with the reason."""

VANISHES = "text of the output is nowhere in the wanted message"
NO_MARKUP = "the wanted message holds markup of the call as text or as arguments"
FOREIGN = "calls of another format, which are reported and not read"
LOST_CALLS: dict[str, str] = {
    "fmt-pythonic-content_call": "a list of calls after prose, which this format reads only at the start",
    "dynamo/tool/pythonic/TOOLCALLING.stream.4.c": "a call without the bracket before it",
    "field4/Rapid-MLX/175": "a section of calls in reasoning that nothing closes, with a word in it",
    "field4/Rapid-MLX/392": "an opener of calls in reasoning that nothing closes, and then the output ends",
}
"""Cases without a call that look like one that went wrong. They are reported, and nothing else about them changes: no
template writes them, and a client that waits for a call must be able to see why none came."""
AGAINST_A_LAW: dict[str, str] = {
    "field4/Rapid-MLX/51": f"{VANISHES}: the reasoning",
    "field4/Rapid-MLX/67": f"{VANISHES}: the call",
    "field4/Rapid-MLX/75": f"{VANISHES}: the call",
    "field4/vllm-mlx/519": f"{VANISHES}: the answer after the call",
    "field4/vllm-mlx/523": f"{VANISHES}: the call with broken JSON",
    "field4/vllm-mlx/560": f"{NO_MARKUP}: a header at the start of a line ends the message before it",
    "field4/Xinference/616": f"{NO_MARKUP}: what closes a call does so after broken arguments, too",
    "field4/Unsloth/690": "a call that is quoted in a JSON string of content would run",
    "field4/Unsloth/740": "a call that has begun would become text at the end of the output: what was sent stays "
    "sent (the policy `cut_calls` can ask for this)",
    "field4/Unsloth/783": FOREIGN,
    "field4/Unsloth/788": f"{VANISHES}: the second call, which is the format's own. The first: {FOREIGN}",
    "field4/Unsloth/807": f"{VANISHES}: all of it",
    "field4/Unsloth/827": f"{VANISHES}: a call of the format itself",
    "field4/Unsloth/918": FOREIGN,
    "field4/Unsloth/920": f"{VANISHES}: a call of the format itself",
    "field4/Unsloth/937": f"{VANISHES}: a call of the format itself",
    "field4/Unsloth/940": f"{VANISHES}: a call of the format itself",
    "field4/Unsloth/946": f"{VANISHES}: the answer after the call",
}
"""Recorded cases of other projects' tests, by id, that contradict a law as they are written, with the reason."""

# Template → (tool name, reasoning name).
TEMPLATES: dict[str, tuple[str, str | None]] = {
    "Apertus-8B-Instruct": ("apertus", "apertus"),
    "Apriel-1.6-15b-Thinker-fixed": ("apriel_1.6", "apriel_1.6"),
    "ByteDance-Seed-OSS": ("seed_oss", "seed_oss"),
    "CohereForAI-c4ai-command-r-plus-tool_use": ("command_r_plus", None),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("command_r7b", "command_r7b"),
    "GLM-4.6": ("glm45", "glm45"),
    "GLM-4.7-Flash": ("glm47", "glm47"),
    "GigaChat3-10B-A1.8B": ("gigachat3", None),
    "Kimi-K2-Instruct": ("kimi_k2", "kimi_k2"),
    "Kimi-K3": ("kimi_k3", "kimi_k3"),
    "LFM2-8B-A1B": ("lfm2", None),
    "MiMo-VL": ("hermes", None),
    "MiniMax-M2": ("minimax_m2", "minimax_m2"),
    "Mistral-Small-3.2-24B-Instruct-2506": ("mistral", "mistral"),
    "NVIDIA-Nemotron-Nano-v2": ("nemotron_nano_v2", "nemotron_nano_v2"),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("hermes", None),
    "Qwen-Qwen2.5-7B-Instruct": ("hermes", None),
    "Qwen3-Coder": ("qwen3_coder", None),
    "Qwen3.5-4B": ("qwen3_coder", "qwen3"),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("deepseek_v3", "deepseek_r1"),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("deepseek_v3", "deepseek_r1"),
    "deepseek-ai-DeepSeek-V3.1": ("deepseek_v31", "deepseek_v3"),
    "deepseek-ai-DeepSeek-V3.2": ("deepseek_v32", "deepseek_v32"),
    "fireworks-ai-llama-3-firefunction-v2": ("firefunction_v2", None),
    "google-gemma-2-2b-it": ("passthrough", None),
    "google-gemma-4-31B-it": ("gemma4", "gemma4"),
    "ibm-granite-granite-3.3-2B-Instruct": ("granite", "granite33"),
    "ibm-granite-granite-4.0": ("granite4", None),
    "llama-cpp-deepseek-r1": ("deepseek_v3", "deepseek_r1"),
    "meetkai-functionary-medium-v3.1": ("functionary_v3.1", None),
    "meetkai-functionary-medium-v3.2": ("functionary_v3.2", None),
    "meta-llama-Llama-3.1-8B-Instruct": ("llama3_json", None),
    "meta-llama-Llama-3.2-3B-Instruct": ("llama3_json", None),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("mistral", "mistral"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("mistral_v3", None),
    "moonshotai-Kimi-K2": ("kimi_k2", "kimi_k2"),
    "openai-gpt-oss-120b": ("gpt-oss", "gpt-oss"),
    "unsloth-Apriel-1.5": ("apriel_1.5", "apriel_1.5"),
    "unsloth-mistral-Devstral-Small-2507": ("mistral", "mistral"),
}


def cases(name: str) -> list[Any]:
    """Return the cases of one file as parameters; one skipped parameter if the file is missing."""
    path = CASES / f"{name}.jsonl"
    if not path.is_file():
        skip = pytest.mark.skip(reason=NO_CASES)
        return [pytest.param(None, id=name, marks=skip)]
    with path.open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [pytest.param(case, id=case["id"]) for case in found]


@cache
def format_tools() -> list[dict[str, Any]]:
    with (CASES / "by_format_tools.json").open(encoding="utf-8") as text:
        tools: list[dict[str, Any]] = json.load(text)
    return tools


def checked(count: Any, name: str, *case: Any, **settings: Any) -> Any:
    """Run ``check``, and count a case that breaks a law."""
    try:
        return check(*case, **settings)
    except AssertionError:
        count(name, False)
        raise


@pytest.mark.parametrize("case", cases("by_format"))
def test_by_format(case: dict[str, Any], count: Any) -> None:
    name = "shared cases, by_format"
    parsed = checked(
        count,
        name,
        case["tool_parser"],
        case["output"],
        reasoning=case["reasoning_parser"],
        tools=case.get("tools") or format_tools(),
        prompt=case.get("prompt"),
        finish_reason=case["finish_reason"],
        cuts=12,
    )
    right = same(parsed, case["expect"]) if case["kind"] == "complete" else not lost(case["words"], parsed)
    count(name, right)
    assert case["id"] not in LOST_CALLS or [d.code for d in parsed.diagnostics] == ["call_like_text"]
    assert right or case["id"] in BELIEVED_WRONG, (
        f"{parsed!r}\nexpected {case['expect']!r}, words {case.get('words')!r}"
    )


@pytest.mark.parametrize("case", cases("by_format_3"))
def test_by_format_3(case: dict[str, Any], count: Any) -> None:
    """Outputs from the test suites of others and from bug reports; ``check`` feeds each with token ids as well. The
    rows ``guard/`` are those that a naive repair of missing closes would break: they are tried at more places."""
    name = "shared cases, by_format_3"
    parsed = checked(
        count,
        name,
        case["tool_parser"],
        case["output"],
        reasoning=case["reasoning_parser"],
        tools=case["tools"],
        prompt=case["prompt"],
        cuts=40 if case["id"].startswith("guard/") else 8,
        roundtrip=False,
    )
    right = same(parsed, case["expect"], exact=case["kind"] != "exact_ws")
    count(name, right)
    assert case["id"] not in LOST_CALLS or [d.code for d in parsed.diagnostics] == ["call_like_text"]
    assert right or case["id"] in BELIEVED_WRONG, f"{parsed!r}\nexpected {case['expect']!r}"


@pytest.mark.parametrize("case", cases("by_format_4"))
def test_by_format_4(case: dict[str, Any], count: Any) -> None:
    """Outputs recorded from the tests of five projects."""
    name = "shared cases, by_format_4"
    settings = {"reasoning": case["reasoning_parser"], "tools": case["tools"], "prompt": case["prompt"]}
    parsed = checked(count, name, case["tool_parser"], case["output"], **settings, cuts=4, roundtrip=False)
    right = same(parsed, case["expect"], exact=case["kind"] != "exact_ws")
    count(name, right)
    assert case["id"] not in LOST_CALLS or [d.code for d in parsed.diagnostics] == ["call_like_text"]
    assert right != (case["id"] in AGAINST_A_LAW), f"{parsed!r}\nexpected {case['expect']!r}"


@pytest.mark.parametrize("case", cases("by_template"))
def test_by_template(case: dict[str, Any], count: Any) -> None:
    tools, reasoning = TEMPLATES[case["template"].removesuffix(".jinja")]
    name = "shared cases, by_template"
    parsed = checked(
        count,
        name,
        tools,
        case["output"],
        reasoning=reasoning,
        tools=case["tools"] or None,
        prompt=case.get("prompt") or case["generation_prompt"] or None,
        prefill=case.get("prefill") or "",
        cuts=12,
    )
    right = same(parsed, case["expect"], partial=case["partial"])
    count(name, right)
    assert right or case["id"] in BELIEVED_WRONG, f"{parsed!r}\nexpected {case['expect']!r}"


# -- The comparison that the cases' README states: texts without outer white space, arguments as JSON, ids not at all --


def same(parsed: Any, expected: dict[str, Any], *, partial: bool = False, exact: bool = True) -> bool:
    """True if the message is the expected one. With ``exact`` false, white space does not count."""
    texts = (parsed.reasoning_content, expected["reasoning_content"]), (parsed.content, expected["content"])
    plain = str.strip if exact else lambda text: "".join(text.split())
    if any(plain(got or "") != plain(wanted or "") for got, wanted in texts):
        return False
    calls = [(c.function.name, c.function.arguments) for c in parsed.tool_calls]
    wanted_calls = [c.get("function", c) for c in expected["tool_calls"]]
    return len(calls) == len(wanted_calls) and all(
        name == wanted["name"] and same_arguments(arguments, wanted["arguments"], partial)
        for (name, arguments), wanted in zip(calls, wanted_calls, strict=True)
    )


def same_arguments(got: str, wanted: Any, partial: bool) -> bool:
    try:
        value = json.loads(wanted) if isinstance(wanted, str) else wanted
        return bool(json.loads(got) == value)
    except ValueError:
        short, long = sorted(("".join(str(got).split()), "".join(str(wanted).split())), key=len)
        return short == long or (partial and long.startswith(short))


def lost(words: list[str], parsed: Any) -> list[str]:
    """Return the words of the output that are nowhere in the message."""
    said = [parsed.reasoning_content or "", parsed.content or ""]
    said += [f"{c.function.name} {c.function.arguments}" for c in parsed.tool_calls]
    return [word for word in words if word not in " ".join(said)]


def test_every_template_has_a_name() -> None:
    """A new template among the cases needs a line in TEMPLATES."""
    if not CASES.is_dir():
        pytest.skip(NO_CASES)
    templates = {p.values[0]["template"].removesuffix(".jinja") for p in cases("by_template")}
    assert templates <= set(TEMPLATES)
