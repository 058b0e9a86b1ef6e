"""Requests of Google's Gemini API.

Contents become messages of Chat Completions: thoughts become ``reasoning_content``, ``functionCall`` a tool call, and
each ``functionResponse`` a message of its own. Calls without an id get one, and responses without an id belong to the
first call of their function that has no response yet. Signatures of thoughts are ignored.

Fields may also be written with underscores (``system_instruction``), as in every JSON form of protocol buffers.

Source: Gemini API reference, "Generating content", "Counting tokens", "Embeddings".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation, Sampling, Thinking
from ...notes import Notes
from ..arguments import arguments_text
from ..fields import Closed, Open, about, read_as
from ..parameters import Count, ModelName, Reports, Request, StopSequences, common, stop_strings
from ..tools import Filled, function_tool
from ..turns import (
    assistant,
    called,
    choice_among,
    choice_of,
    file_part,
    grouped,
    image_part,
    is_prefill,
    is_text,
    names_of,
    schema_format,
    text_part,
    tool_result,
)


class Blob(Closed):
    """Data in base64."""

    mimeType: Annotated[Filled, about("Media type, of an image or of text.")]
    data: Annotated[Filled, about("The data in base64.")]
    displayName: Annotated[str | None, about("Title, which comes before a text.")] = None


class FunctionCall(Closed):
    """A call of a function; only in the model's turns."""

    name: Annotated[Filled, about("Name of the function.")]
    id: Annotated[str | None, about("Id of the call, repeated by its response.")] = None
    args: Annotated[dict[str, Any] | None, about("The arguments.")] = None


class FunctionResponse(Closed, ignored="willContinue scheduling"):
    """The result of a call; only in the user's turns."""

    name: Annotated[Filled, about("Name of the function.")]
    response: Annotated[dict[str, Any], about("The result.")]
    id: Annotated[str | None, about("Id of the call.")] = None


class Part(Closed, ignored="thoughtSignature videoMetadata", refused="fileData executableCode codeExecutionResult"):
    """A part of a turn: one of text, data, a call or its result."""

    text: Annotated[str | None, about("The text.")] = None
    thought: Annotated[bool | None, about("`true` if the text is a thought of the model.")] = None
    inlineData: Annotated[Blob | None, about("A text, or an image for engines that take images.")] = None
    functionCall: Annotated[FunctionCall | None, about("A call of a function.")] = None
    functionResponse: Annotated[FunctionResponse | None, about("The result of a call.")] = None


class Content(Closed):
    """A turn of the conversation."""

    parts: Annotated[list[Part] | None, about("The parts.")] = None
    role: Annotated[
        Literal["user", "model", "function", "system"] | None, about("Author of the turn; `user` if absent.")
    ] = None


class FunctionDeclaration(Closed, ignored="response responseJsonSchema behavior"):
    """A function that the model may call."""

    name: Annotated[Filled, about("Name of the function.")]
    description: Annotated[str | None, about("Purpose of the function, for the model.")] = None
    parameters: Annotated[dict[str, Any] | None, about("Schema of the arguments, in Google's form.")] = None
    parametersJsonSchema: Annotated[dict[str, Any] | None, about("JSON schema of the arguments.")] = None


class GeminiTool(
    Closed,
    refused="googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch googleMaps",
):
    """Functions that the model may call. Tools that Google runs are not supported."""

    functionDeclarations: Annotated[list[FunctionDeclaration] | None, about("The functions.")] = None


class FunctionCallingConfig(Closed):
    """Requires, allows or forbids calls."""

    mode: Annotated[
        Literal["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"] | None,
        about("`ANY` requires a call, `NONE` forbids calls."),
    ] = None
    allowedFunctionNames: Annotated[list[str] | None, about("Functions that may be called, with `ANY`.")] = None


class ToolConfig(Closed, ignored="retrievalConfig"):
    """Settings of calls."""

    functionCallingConfig: Annotated[FunctionCallingConfig | None, about("Require, allow or forbid calls.")] = None


class ThinkingConfig(Closed):
    """Settings of thoughts."""

    includeThoughts: Annotated[bool | None, about("Return thoughts; they are left out otherwise.")] = None
    thinkingBudget: Annotated[
        Annotated[int, Meta(ge=-1, le=1 << 31)] | None, about("Most tokens of thoughts; 0: none, -1: no limit.")
    ] = None
    thinkingLevel: Annotated[str | None, about("Effort of thinking, for templates that know it.")] = None


class GenerationConfig(
    Closed,
    ignored="enableEnhancedCivicAnswers mediaResolution",
    refused="logprobs responseLogprobs speechConfig imageConfig",
):
    """Settings of the output."""

    temperature: Annotated[Annotated[float, Meta(ge=0)] | None, about("Temperature.")] = None
    topP: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, about("Sample from the likeliest tokens.")] = None
    topK: Annotated[Annotated[float, Meta(ge=0, le=1 << 31)] | None, about("Sample from so many tokens.")] = None
    candidateCount: Annotated[Count | None, about("Number of candidates.")] = None
    maxOutputTokens: Annotated[Count | None, about("Most tokens of output, thoughts included.")] = None
    stopSequences: Annotated[StopSequences | None, about("Strings that end the text, at most 64.")] = None
    seed: Annotated[int | None, about("Seed of sampling.")] = None
    presencePenalty: Annotated[Annotated[float, Meta(ge=-2, le=2)] | None, about("Penalty on used tokens.")] = None
    frequencyPenalty: Annotated[Annotated[float, Meta(ge=-2, le=2)] | None, about("Penalty by use.")] = None
    responseMimeType: Annotated[
        Literal["text/plain", "application/json"] | None, about("`application/json` for an answer in JSON.")
    ] = None
    responseSchema: Annotated[dict[str, Any] | None, about("Schema of the answer, in Google's form.")] = None
    responseJsonSchema: Annotated[dict[str, Any] | None, about("JSON schema of the answer.")] = None
    thinkingConfig: Annotated[ThinkingConfig | None, about("Settings of thoughts.")] = None
    responseModalities: Annotated[
        list[Literal["TEXT", "MODALITY_UNSPECIFIED"]] | None, about("Only text is supported.")
    ] = None


class GenerateContentRequest(
    Request,
    kw_only=True,
    ignored="safetySettings labels serviceTier store",
    refused="cachedContent",
):
    """A request for content. The path has the model and whether it is streamed."""

    contents: Annotated[Annotated[list[Content], Meta(min_length=1)], about("The conversation.")]
    systemInstruction: Annotated[Content | None, about("System message.")] = None
    tools: Annotated[list[GeminiTool] | None, about("Functions that the model may call.")] = None
    toolConfig: Annotated[ToolConfig | None, about("Require, allow or forbid calls.")] = None
    generationConfig: Annotated[GenerationConfig | None, about("Settings of the output.")] = None


class CountContentTokensRequest(Open, kw_only=True):
    """A request to count the tokens of a prompt."""

    model: ModelName = None
    contents: Annotated[list[Any] | None, about("The conversation.")] = None
    generateContentRequest: Annotated[dict[str, Any] | None, about("A whole request instead of contents.")] = None
    untemplate: Reports = None


class EmbedContentRequest(Open, kw_only=True, ignored="taskType title"):
    """A request for the embedding of a text."""

    model: ModelName = None
    content: Annotated[Content, about("The text.")]
    outputDimensionality: Annotated[Count | None, about("Number of dimensions.")] = None


class BatchEmbedContentsRequest(Open, kw_only=True):
    """A request for the embeddings of texts."""

    model: ModelName = None
    requests: Annotated[Annotated[list[EmbedContentRequest], Meta(min_length=1)], about("One for each text.")]


_FREE: Final = frozenset(
    ("args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels")
)
"""Fields whose values are not the API's."""


def camel(value: Any) -> Any:
    """Return a JSON value with its fields in camel case."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"(?<=[a-z])_([a-z])", lambda found: found[1].upper(), key): one for key, one in value.items()}
    return {key: one if key in _FREE else camel(one) for key, one in named.items()}


def read_generate_content(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request for output, to which the model and ``stream`` have been added."""
    notes = notes or Notes()
    body = camel(body)
    asked = read_as(GenerateContentRequest, body, notes=notes)
    config = asked.generationConfig or GenerationConfig()
    messages = _messages(asked)
    tools = [_function(one, path) for path, one in _declared(asked.tools or ())]
    return Generation(
        **common(asked, body, notes),
        messages=messages,
        tools=tools or None,
        tool_choice=_tool_choice(asked.toolConfig, tools),
        response_format=_response_format(config),
        stop=stop_strings(config.stopSequences),
        max_tokens=config.maxOutputTokens,
        n=config.candidateCount or 1,
        sampling=Sampling(
            temperature=config.temperature,
            top_p=config.topP,
            top_k=None if config.topK is None else int(config.topK),
            seed=config.seed,
            presence_penalty=config.presencePenalty,
            frequency_penalty=config.frequencyPenalty,
        ),
        thinking=_thinking(config.thinkingConfig),
        continue_final_message=is_prefill(messages, "contents"),
        include_reasoning=config.thinkingConfig is not None and bool(config.thinkingConfig.includeThoughts),
    )


def read_count_tokens(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request to count tokens."""
    asked = read_as(CountContentTokensRequest, camel(body), notes=notes)
    whole = asked.generateContentRequest
    return read_generate_content({**(whole or {"contents": asked.contents}), "model": asked.model}, notes)


def plain_text(content: Content, path: str) -> str:
    """Return the text of a content that may only have text."""
    parts = content.parts or ()
    for i, part in enumerate(parts):
        if part.text is None:
            raise unsupported(f"{path}.parts[{i}]", "only text is supported")
    return "\n".join(part.text or "" for part in parts)


# -- Turns -------------------------------------------------------------------------------------------------------


def _messages(asked: GenerateContentRequest) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if asked.systemInstruction is not None:
        messages.append({"role": "system", "content": plain_text(asked.systemInstruction, "systemInstruction")})
    open_calls: list[tuple[str, str]] = []
    for i, content in enumerate(asked.contents):
        path = f"contents[{i}].parts"
        parts = content.parts or []
        if not parts:
            raise bad_request(path, "must not be empty")
        if content.role == "model":
            messages.append(_model(parts, i, open_calls))
        else:
            role = "system" if content.role == "system" else "user"
            messages += grouped(role, [_piece(part, f"{path}[{k}]", open_calls) for k, part in enumerate(parts)])
    for message in messages:
        content = message["content"]
        if isinstance(content, list) and all(part["type"] == "text" for part in content):
            message["content"] = "".join(part["text"] for part in content)
    return messages


def _model(parts: Sequence[Part], turn: int, open_calls: list[tuple[str, str]]) -> dict[str, Any]:
    path = f"contents[{turn}].parts"
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for k, part in enumerate(parts):
        call = part.functionCall
        if call is not None:
            id = call.id or f"call_{turn}_{k}"
            open_calls.append((id, call.name))
            calls.append(called(id, call.name, arguments_text(call.args or {}, f"{path}[{k}].functionCall.args")))
        elif part.functionResponse is not None or part.inlineData is not None:
            name = "inlineData" if part.functionResponse is None else "functionResponse"
            raise unsupported(f"{path}[{k}].{name}", "is not supported in the model's turns")
        else:
            (thoughts if part.thought else texts).append(part.text or "")
    return assistant(texts, thoughts, calls)


def _piece(part: Part, path: str, open_calls: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a part of the user's as a part of a message, or a result as a message."""
    data, result = part.inlineData, part.functionResponse
    if result is not None:
        return tool_result(_answered(result, open_calls), _shown(result))
    if part.functionCall is not None:
        raise unsupported(f"{path}.functionCall", "is not supported in the user's turns")
    if data is None:
        return text_part(part.text or "")
    if data.mimeType.startswith("image/"):
        return image_part(f"data:{data.mimeType};base64,{data.data}")
    if is_text(data.mimeType):
        return file_part(data.mimeType, data.data, data.displayName, f"{path}.inlineData.data")
    raise unsupported(f"{path}.inlineData.mimeType", f"only images and text are supported, got {data.mimeType[:64]!r}")


def _answered(result: FunctionResponse, open_calls: list[tuple[str, str]]) -> str:
    """Return the id of the call that a result belongs to, and close the call."""
    for i, (id, name) in enumerate(open_calls):
        if id == result.id or (not result.id and name == result.name):
            del open_calls[i]
            return id
    return result.id or result.name


def _shown(result: FunctionResponse) -> str:
    """Return a result as text. Google names a plain one ``output`` or ``result``."""
    value: Any = result.response
    if len(value) == 1 and isinstance(plain := value.get("output", value.get("result")), str):
        return plain
    return json.dumps(value, ensure_ascii=False)


# -- Tools and settings ------------------------------------------------------------------------------------------


def _declared(tools: Sequence[GeminiTool]) -> list[tuple[str, FunctionDeclaration]]:
    found = []
    for i, tool in enumerate(tools):
        path = f"tools[{i}].functionDeclarations"
        found += [(f"{path}[{k}]", one) for k, one in enumerate(tool.functionDeclarations or ())]
    return found


def _function(declared: FunctionDeclaration, path: str) -> dict[str, Any]:
    schema = declared.parametersJsonSchema
    if schema is None and declared.parameters is not None:
        schema = json_schema(declared.parameters, f"{path}.parameters")
    return function_tool(declared.name, declared.description, schema, None)


_DROPPED: Final = ("nullable", "propertyOrdering", "example", "format")
_NUMBERS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def json_schema(schema: Any, path: str, depth: int = 0) -> Any:
    """Return a schema in Google's form as JSON schema: lower-case types, ``nullable`` as a type, numbers as numbers.

    Raises:
        ApiError: it is not an object, or nested too deeply.
    """
    if not isinstance(schema, dict) or depth > 64:
        raise bad_request(path, "must be a schema" if depth <= 64 else "is nested too deeply")
    found = {
        key: _converted(key, value, f"{path}.{key}", depth + 1)
        for key, value in schema.items()
        if key not in _DROPPED and (key, value) != ("type", "TYPE_UNSPECIFIED")
    }
    if schema.get("nullable") is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
        if isinstance(found.get("enum"), list):
            found["enum"] = [*found["enum"], None]
    return found


def _converted(key: str, value: Any, path: str, depth: int) -> Any:
    """Return the value of a keyword of a schema."""
    if isinstance(value, str):
        number = key in _NUMBERS and value.isdecimal()
        return value.lower() if key == "type" else int(value[:18]) if number else value
    if key in ("properties", "defs", "$defs") and isinstance(value, dict):
        return {name: json_schema(one, f"{path}.{name}", depth) for name, one in value.items()}
    if key == "items" and isinstance(value, dict):
        return json_schema(value, path, depth)
    if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [json_schema(one, f"{path}[{i}]", depth) for i, one in enumerate(value)]
    return value


def _tool_choice(config: ToolConfig | None, tools: Sequence[dict[str, Any]]) -> Any:
    """Return ``tool_choice`` in the shape of Chat Completions."""
    calling = None if config is None else config.functionCallingConfig
    if calling is None or calling.mode is None:
        return None
    path = "toolConfig.functionCallingConfig.allowedFunctionNames"
    names = names_of(tools)
    named = [choice_of(name, names, f"{path}[{i}]") for i, name in enumerate(calling.allowedFunctionNames or ())]
    if calling.mode == "NONE":
        return "none"
    mode = "required" if calling.mode == "ANY" else "auto"
    if not named:
        return mode
    return named[0] if mode == "required" and len(named) == 1 else choice_among(mode, named)


def _thinking(config: ThinkingConfig | None) -> Thinking:
    if config is None:
        return Thinking()
    budget = config.thinkingBudget
    effort = config.thinkingLevel.lower() if config.thinkingLevel else None
    if effort not in (None, "minimal", "low", "medium", "high", "thinking_level_unspecified"):
        raise bad_request("generationConfig.thinkingConfig.thinkingLevel", "is not one of: MINIMAL, LOW, MEDIUM, HIGH")
    effort = None if effort == "thinking_level_unspecified" else effort
    if budget == 0:
        return Thinking(enabled=False)
    return Thinking(enabled=True if budget else None, effort=effort, budget=budget if budget and budget > 0 else None)


def _response_format(config: GenerationConfig) -> dict[str, Any] | None:
    schema = config.responseJsonSchema
    if schema is None and config.responseSchema is not None:
        schema = json_schema(config.responseSchema, "generationConfig.responseSchema")
    if schema is not None:
        return schema_format(schema)
    return {"type": "json_object"} if config.responseMimeType == "application/json" else None
