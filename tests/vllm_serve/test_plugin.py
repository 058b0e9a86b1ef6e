"""The plugin in vLLM's managers, without its server."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("vllm")

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager

from untemplate.integrations.vllm import register

TEMPLATE = (
    "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n"
    "{{ '<think>\n' if enable_thinking else '<think>\n\n</think>\n\n' }}{%- endif -%}"
)


def tokenizer(template: str) -> Any:
    """Return a tokenizer of bytes with a chat template."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_tokens(
        [AddedToken(text, normalized=False) for text in ("<|im_start|>", "<|im_end|>", "<think>", "</think>")]
    )
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    found.chat_template = template
    return found


@pytest.mark.parametrize(
    ("thinking", "expected"), [(True, ("I add.", "It is 5.", None)), (False, (None, "I add.\n\n\nIt is 5.", None))]
)
def test_a_whole_output_without_its_prompt_begins_as_the_template_does(thinking: bool, expected: Any) -> None:
    """vLLM before 0.32 does not give the prompt."""
    register()
    made = ParserManager.get_parser("untemplate:hermes", "untemplate:qwen3", enable_auto_tools=True)
    settings = {"enable_thinking": thinking}
    request = ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "2 + 3?"}], chat_template_kwargs=settings
    )
    parser = made(tokenizer(TEMPLATE), None, chat_template_kwargs=settings)
    assert parser.parse("I add.\n</think>\n\nIt is 5.", request, True, []) == expected


def test_a_request_of_the_messages_api_without_tools_gets_no_calls() -> None:
    """vLLM leaves its ``tool_choice`` unset, and would ask for calls where the answer is streamed."""
    register()
    made = ParserManager.get_parser("untemplate:hermes", "untemplate:qwen3", enable_auto_tools=True)
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}])
    request.tool_choice = None
    parser = made(tokenizer(TEMPLATE), request.tools)
    request = parser.adjust_request(request)
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    delta = parser.parse_delta(text, [], request, [], finished=True)
    assert (delta.content, delta.tool_calls) == (text, [])


def test_warnings_go_to_the_log_of_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM configures its logger after it has loaded the plugin."""
    own, theirs = logging.getLogger("untemplate"), logging.getLogger("vllm")
    monkeypatch.setattr(theirs, "propagate", False)
    for handlers, seen in (([], ["first", "second"]), ([logging.NullHandler()], [])):
        records: list[str] = []
        monkeypatch.setattr(own, "handlers", list(handlers))
        monkeypatch.setattr(own, "propagate", True)
        monkeypatch.setattr(theirs, "handlers", [])
        register()
        handler = logging.Handler()
        monkeypatch.setattr(handler, "emit", lambda record, into=records: into.append(record.getMessage()))
        monkeypatch.setattr(theirs, "handlers", [handler])
        for message in ("first", "second"):
            own.warning(message)
        assert records == seen


def test_an_unknown_name_on_the_command_line_has_suggestions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """vLLM's own error lists all names that are registered."""
    monkeypatch.setattr(logging.getLogger("untemplate"), "propagate", True)
    monkeypatch.setattr("untemplate.integrations.vllm._log_with_vllm", lambda: None)
    words = ["vllm", "serve", "--reasoning-parser", "untemplate:m", "--tool-call-parser=untemplate:hermess"]
    monkeypatch.setattr("sys.argv", [*words, "--tool_call_parser", "untemplate:qwen3", "--chat-template", "a.jinja"])
    register()
    assert list(dict.fromkeys(record.getMessage() for record in caplog.records)) == [
        "unknown reasoning parser 'untemplate:m'; `untemplate formats --kind reasoning` lists all names",
        "unknown tool parser 'untemplate:hermess'; did you mean 'untemplate:hermes'? `untemplate formats --kind tool` "
        "lists all names",
        "unknown tool parser 'untemplate:qwen3'; it is a reasoning parser; `untemplate formats --kind tool` lists all "
        "names",
    ]


def test_halves_of_the_other_kind_are_unknown() -> None:
    register()
    with pytest.raises((KeyError, TypeError), match="untemplate:qwen3"):
        ParserManager.get_parser("untemplate:qwen3", "untemplate:qwen3", enable_auto_tools=True)
    with pytest.raises((KeyError, TypeError), match="untemplate:hermes"):
        ParserManager.get_parser("untemplate:hermes", "untemplate:hermes", enable_auto_tools=True)


QWEN3_CALLS = (
    "{{ tools | tojson }}{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] -%}"
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{%- endfor -%}"
    "<|im_end|>\n{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)


_CALLS = "calls, parallel_calls, no_arguments, content_with_calls"
_VALUES = "string, number, integer, boolean, null, object, array, awkward_strings"


@pytest.mark.parametrize(
    ("names", "fmt", "certified", "failed"),
    [
        (("untemplate:hermes", "untemplate:qwen3"), "hermes+qwen3", f"content, {_CALLS}, {_VALUES}, several_turns", ""),
        (
            ("untemplate:qwen3_coder", "untemplate:qwen3"),
            "qwen3_coder+qwen3",
            "content, several_turns",
            f"{_CALLS}, {_VALUES}",
        ),
        (
            ("untemplate:qwen3_coder", None),
            "qwen3_coder",
            "content, several_turns",
            f"{_CALLS}, {_VALUES}; there is no reasoning parser",
        ),
        (
            (None, "untemplate:qwen3"),
            "qwen3",
            "content, several_turns",
            f"{_CALLS}, {_VALUES}; there is no tool parser",
        ),
    ],
)
def test_a_format_that_is_named_is_measured_once_against_the_chat_template(
    names: tuple[str, str | None], fmt: str, certified: str, failed: str, monkeypatch: Any, caplog: Any
) -> None:
    log = logging.getLogger("vllm.untemplate")  # vLLM's server configures it: here it is as a new one
    for name, value in (("disabled", False), ("propagate", False), ("handlers", [caplog.handler])):
        monkeypatch.setattr(log, name, value)
    register()
    made = ParserManager.get_parser(*names, enable_auto_tools=True)
    served = tokenizer(QWEN3_CALLS)
    with caplog.at_level(logging.INFO, "vllm.untemplate"):
        for _ in range(3):
            made(served, None)
    said = [record.getMessage() for record in caplog.records if record.name == "vllm.untemplate"]
    expected = [f"untemplate parses None as {fmt!r} (enforced); certified: {certified}"]
    if failed:
        expected.append(f"untemplate: {fmt} does not read all that the chat template writes: {failed}")
    assert said == expected
