"""A handler for the Berkeley Function Calling Leaderboard (``bfcl-eval``) that serves any model with a chat template.

::

    python -m untemplate.integrations.bfcl generate --model untemplate/Qwen/Qwen3-8B --test-category simple_python
    python -m untemplate.integrations.bfcl evaluate --model untemplate/Qwen/Qwen3-8B --test-category simple_python

The arguments are those of ``bfcl``. The prompt is the model's own chat template with tools, and the Format is the one
that certifies against it.

Source: ``bfcl_eval/model_handler/local_inference/base_oss_handler.py`` of bfcl-eval 2026.3.23.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._internal.output_parser import OutputParser
from ._of_tokenizer import parser_of
from ._partner import Theirs, partner

__all__ = ["UntemplateHandler", "main", "register"]

_LEAST: Final = "2026.3"
_oss: Final = partner("bfcl_eval.model_handler.local_inference.base_oss_handler", "bfcl-eval", _LEAST)
_utils: Final = partner("bfcl_eval.model_handler.utils", "bfcl-eval", _LEAST)
_types: Final = partner("bfcl_eval.constants.type_mappings", "bfcl-eval", _LEAST)
_override: Final[Any] = partial(_oss.override, check_signature=False)
"""BFCL refuses methods that replace one of its own without this. Its check of signatures rejects ``dict[str, Any]``."""

_PREFIX: Final = "untemplate/"


if TYPE_CHECKING:
    _OSSHandler = Theirs
else:
    _OSSHandler = _oss.OSSHandler


class UntemplateHandler(_OSSHandler):
    """Asks a server for text, and reads reasoning and calls from it.

    Calls whose arguments are not a whole JSON object are left out.
    """

    format_name: ClassVar[str | None] = None
    skip_special_tokens: ClassVar[bool] = False
    """Sent with each request: markers may be special tokens."""

    @cached_property
    def _parser(self) -> OutputParser:
        return parser_of(self.tokenizer, self.format_name)

    @_override  # type: ignore[untyped-decorator]
    def _pre_query_processing_prompting(self, test_entry: dict[str, Any]) -> dict[str, Any]:
        functions = test_entry["function"]
        tools = _utils.convert_to_tool(functions, _types.GORILLA_TO_OPENAPI, self.model_style)
        return {"message": [], "function": tools}

    @_override  # type: ignore[untyped-decorator]
    def _format_prompt(self, messages: Any, function: Any) -> str:
        tools = [tool if "function" in tool else {"type": "function", "function": tool} for tool in function]
        options = {"tools": tools or None, "tokenize": False, "add_generation_prompt": True}
        return str(self.tokenizer.apply_chat_template(messages, **options))

    @_override  # type: ignore[untyped-decorator]
    def _query_prompting(self, inference_data: dict[str, Any]) -> Any:
        response, seconds = super()._query_prompting(inference_data)  # type: ignore[misc]
        # BFCL passes nothing else to the method that reads the answer, and it asks from several threads.
        response.untemplate = inference_data["inference_input_log"]["formatted_prompt"], inference_data["function"]
        return response, seconds

    @_override  # type: ignore[untyped-decorator]
    def _parse_query_response_prompting(self, api_response: Any) -> dict[str, Any]:
        prompt, tools = api_response.untemplate
        choice = api_response.choices[0]
        parsed = self._parser.parse(choice.text, tools=tools, prompt=prompt, finish_reason=choice.finish_reason)
        message = parsed.message(reasoning_field="reasoning_content")
        calls = [call for call in parsed.tool_calls if call.status not in ("incomplete", "invalid_json")]
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = _object(call["function"]["arguments"])
        found = [{call.function.name: json.loads(call.function.arguments)} for call in calls]
        return {
            "model_responses": found or parsed.content or "",
            "reasoning_content": parsed.reasoning or "",
            "model_responses_message_for_chat_history": message,
            "tool_call_ids": [call.id for call in calls],
            "input_token": api_response.usage.prompt_tokens,
            "output_token": api_response.usage.completion_tokens,
        }

    @_override  # type: ignore[untyped-decorator]
    def _add_assistant_message_prompting(
        self, inference_data: dict[str, Any], model_response_data: dict[str, Any]
    ) -> dict[str, Any]:
        inference_data["message"].append(model_response_data["model_responses_message_for_chat_history"])
        return inference_data

    @_override  # type: ignore[untyped-decorator]
    def _add_execution_results_prompting(
        self, inference_data: dict[str, Any], execution_results: list[str], model_response_data: dict[str, Any]
    ) -> dict[str, Any]:
        for result, call_id in zip(execution_results, model_response_data["tool_call_ids"], strict=False):
            inference_data["message"].append({"role": "tool", "tool_call_id": call_id, "content": result})
        return inference_data

    @_override  # type: ignore[untyped-decorator]
    def decode_ast(self, result: Any, language: Any, has_tool_call_tag: bool) -> Any:
        """Return the calls of an answer.

        Raises:
            ValueError: there are no calls.
        """
        if not isinstance(result, list):
            raise ValueError(f"the answer has no calls: {result!r:.200}")
        return result

    @_override  # type: ignore[untyped-decorator]
    def decode_execute(self, result: Any, has_tool_call_tag: bool) -> Any:
        """Return the calls of an answer as Python expressions. Raises ValueError without calls."""
        return _utils.convert_to_function_call(self.decode_ast(result, None, has_tool_call_tag))


def _object(arguments: str) -> Any:
    """Return arguments as chat templates want them: an object if they are one, else as written."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def register(model: str, format: str | None = None) -> str:
    """Add a model of the hub to BFCL's table, and return its name there: ``untemplate/`` and the model's.

    Args:
        model: name on the hub.
        format: a name of the catalogue. Default: the Format that certifies against the chat template.
    """
    config = partner("bfcl_eval.constants.model_config", "bfcl-eval", _LEAST)
    handler = type("UntemplateHandler", (UntemplateHandler,), {"format_name": format, "__module__": __name__})
    config.MODEL_CONFIG_MAPPING[_PREFIX + model] = config.ModelConfig(
        model_name=model,
        display_name=f"{model} (untemplate)",
        url=f"https://huggingface.co/{model}",
        org=model.partition("/")[0],
        license="",
        model_handler=handler,
        is_fc_model=True,
        underscore_to_dot=True,  # tools are offered with "_" in place of "."
    )
    return _PREFIX + model


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``bfcl`` with the models that its arguments name with ``untemplate/``."""
    chosen = list(sys.argv[1:] if arguments is None else arguments)
    for word in re.split(r"[\0=,]", "\0".join(chosen)):
        if word.startswith(_PREFIX):
            register(word.removeprefix(_PREFIX))
    partner("bfcl_eval.__main__", "bfcl-eval", _LEAST).cli(chosen)


if __name__ == "__main__":
    main()
