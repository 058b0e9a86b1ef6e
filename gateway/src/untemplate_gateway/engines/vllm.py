"""vLLM in this process: ``AsyncLLM``.

* vLLM only generates: its text arrives with special tokens and ids, as deltas. It is never given the names of parsers.
* Prompts are tokenized here, so that no BOS token is added before a rendered prompt.
* ``extra`` passes any other engine argument to vLLM by name, checked against the arguments of the installed version.
  Distribution (tensor, pipeline and data parallelism, Ray) is configured this way.

Written against vLLM 0.10 and later, as documented at https://docs.vllm.ai/en/latest/api/vllm/v1/engine/async_llm/.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import io
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from untemplate._internal.suggestions import close_names, did_you_mean
from untemplate.templates import ChatTemplate, TemplateError

from ..errors import ApiError
from ..generation import TokenLogprob, Usage
from ..settings import Vllm
from .base import Engine, EngineChunk, EngineError, Health, Job, Takes

_PARSERS: Final = frozenset(
    (
        "enable_auto_tool_choice",
        "reasoning_parser",
        "reasoning_parser_plugin",
        "tool_call_parser",
        "tool_parser_plugin",
        "tool_server",
    )
)
"""Arguments of vLLM's server that concern parsing; in some versions the engine has them, too."""
_OWN: Final = frozenset(("model", "skip_tokenizer_init", "trust_remote_code"))
"""Arguments that this module sets."""


class VllmEngine(Engine):
    """A model in vLLM.

    Args:
        model: a model's folder, or its id on the hub.
        options: the settings of this engine.
    """

    kind = "vllm"
    takes = Takes(
        grammar="structural_tag",
        logprobs=True,
        token_ids=True,
        sampling=frozenset(("stop_token_ids", "min_tokens", "ignore_eos")),
        constraints=frozenset(("grammar", "regex", "choice")),
    )

    def __init__(self, model: str, options: Vllm | None = None) -> None:
        self.model = model
        self.context_length: int | None = None
        """Tokens of context; known once the engine has started."""
        self._options = options or Vllm()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._params: Any = None
        self._defaults: dict[str, Any] = {}

    # -- Start and end -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._engine is not None:
            return
        try:
            llm = importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM
            make = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
            self._params = importlib.import_module("vllm.sampling_params")
        except (ImportError, AttributeError) as error:
            problem = f"this engine needs vLLM 0.10 or later (pip install vllm): {error}"
            raise EngineError(problem, status=500, code="engine_missing") from None
        options = msgspec.structs.asdict(self._options)
        extra = _checked(options.pop("extra"), make)
        options["max_model_len"] = options["max_model_len"] or None
        arguments = make(**{"model": self.model, **options, **extra})
        try:
            # Loading blocks for minutes; requests for other models continue in the meantime.
            self._engine = await asyncio.to_thread(llm.from_engine_args, arguments)
            self._tokenizer = await _awaited(self._engine.get_tokenizer())
        except Exception as error:
            await self.close()
            problem = f"vLLM cannot load {self.model}: {type(error).__name__}: {error}"
            raise EngineError(problem, status=500, code="model_not_loaded") from None
        config = getattr(self._engine, "model_config", None)
        self.context_length = getattr(config, "max_model_len", None)
        if getattr(config, "is_multimodal_model", False):
            self.takes = msgspec.structs.replace(self.takes, images="")
        defaults = getattr(config, "get_diff_sampling_param", None)
        self._defaults = dict(defaults() or {}) if defaults is not None else {}

    async def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.shutdown)

    async def health(self) -> Health:
        if self._engine is None:
            return Health(ok=False, detail="not started")
        try:
            await self._engine.check_health()
        except Exception as error:
            return Health(ok=False, detail=str(error) or type(error).__name__)
        return Health(ok=True)

    @property
    def ended(self) -> str:  # type: ignore[override]
        return "vLLM has crashed" if getattr(self._engine, "errored", False) else ""

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        return await asyncio.to_thread(self._encoded, text, False, special)

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        text: str = self._loaded().decode(list(token_ids), skip_special_tokens=False)
        return text

    def vocabulary(self) -> Any:
        return self._tokenizer

    def template(self) -> ChatTemplate | None:
        try:
            return ChatTemplate.of_tokenizer(self._tokenizer, name=self.model)
        except TemplateError:
            return None

    # -- Outputs -----------------------------------------------------------------------------------------------------

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        engine = self._engine
        self._loaded()
        try:
            params = self._sampling(job)
            ids = job.prompt if isinstance(job.prompt, list) else await self._prompt(job.prompt, job.raw)
            inputs: dict[str, Any] = {"prompt_token_ids": ids}
            if job.images:
                inputs["multi_modal_data"] = {"image": await asyncio.to_thread(_opened, job.images)}
            outputs = engine.generate(inputs, params, job.id)
            written = 0
            done = False
            try:
                async with aclosing(outputs):
                    async for output in outputs:
                        [one] = output.outputs
                        written += len(one.token_ids)
                        piece = EngineChunk(one.text, list(one.token_ids), None, _likely(one, job.logprobs))
                        if one.finish_reason is not None:
                            done = True
                            piece.finish_reason = _reason(one.finish_reason)
                            piece.usage = Usage(
                                prompt_tokens=len(output.prompt_token_ids or ids),
                                completion_tokens=written,
                                cached_tokens=getattr(output, "num_cached_tokens", None) or 0,
                            )
                        yield piece
                        if done:
                            return
            finally:
                if not done:
                    await asyncio.shield(_awaited(engine.abort(job.id)))
        except ApiError:
            raise
        except Exception as error:
            raise _failed(error) from None
        raise EngineError("vLLM ended the output without a finish reason")

    async def _prompt(self, text: str, raw: bool) -> list[int]:
        if len(text) < 4096:
            return self._encoded(text, raw, True)
        return await asyncio.to_thread(self._encoded, text, raw, True)

    def _encoded(self, text: str, add: bool, special: bool) -> list[int]:
        settings: dict[str, Any] = {"add_special_tokens": add}
        if not special:
            settings["split_special_tokens"] = True
        encoded = self._loaded().encode(text, **settings)
        return list(getattr(encoded, "ids", encoded))

    def _loaded(self) -> Any:
        if self._engine is None:
            raise EngineError("the engine is not started", status=503)
        return self._tokenizer

    def _sampling(self, job: Job) -> Any:
        asked = job.sampling
        found = asked.given()
        if asked.logit_bias is not None:
            found["logit_bias"] = {int(token): bias for token, bias in asked.logit_bias.items()}
        if job.logprobs is not None:
            found["logprobs"] = job.logprobs
        if job.grammar is not None:
            found |= self._constrained("structural_tag", job.grammar.text)
        elif job.constraint is not None:
            value = job.constraint.value
            found |= self._constrained(job.constraint.kind, value if isinstance(value, str) else list(value))
        defaults = {name: value for name, value in self._defaults.items() if name != "max_tokens"}
        return self._params.SamplingParams(
            **{
                **defaults,
                **found,
                "max_tokens": job.max_tokens,
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                "output_kind": self._params.RequestOutputKind.DELTA,
            }
        )

    def _constrained(self, kind: str, value: Any) -> dict[str, Any]:
        newer = getattr(self._params, "StructuredOutputsParams", None)
        if newer is not None:
            return {"structured_outputs": newer(**{kind: value})}
        return {"guided_decoding": self._params.GuidedDecodingParams(**{kind: value})}


async def _awaited(value: Any) -> Any:
    """Return the value; await it first if this version of vLLM returns an awaitable."""
    return await value if inspect.isawaitable(value) else value


def _reason(reason: str) -> str:
    if reason in ("stop", "length"):
        return reason
    if reason == "repetition":  # vLLM ends an output that repeats itself: a partial answer
        return "length"
    raise EngineError(f"vLLM ended the output: {reason}")


def _failed(error: Exception) -> ApiError:
    """Return the error for a failure in vLLM. A request that it refuses is a 400."""
    name = type(error).__name__
    if isinstance(error, ValueError) or any(cls.__name__ == "VLLMClientError" for cls in type(error).__mro__):
        long = "max_model_len" in str(error) or "maximum context length" in str(error)
        return ApiError(400, f"vLLM: {error}", code="context_length_exceeded" if long else "invalid_request")
    if name == "EngineDeadError":
        return EngineError(
            "vLLM has crashed; the next request starts it again", status=503, code="engine_dead", detail=str(error)
        )
    cause = error.__cause__
    detail = f"{name}: {error}" + (f" ({type(cause).__name__}: {cause})" if cause else "")
    return EngineError("vLLM failed; the server's log has the reason", detail=detail)


def _opened(images: Sequence[bytes]) -> list[Any]:
    """Return images as vLLM takes them.

    Raises:
        ApiError: one is not an image, or too large.
    """
    library = importlib.import_module("PIL.Image")  # a requirement of vLLM
    try:
        return [library.open(io.BytesIO(image)).convert("RGB") for image in images]
    except (OSError, ValueError, library.DecompressionBombError):
        raise ApiError(400, "messages: an image cannot be read", param="messages") from None


def _likely(output: Any, top: int | None) -> list[TokenLogprob] | None:
    if top is None or not output.logprobs:
        return None
    found = []
    for token, rivals in zip(output.token_ids, output.logprobs, strict=False):
        ranked = sorted(rivals.items(), key=lambda item: -item[1].logprob)
        texts = [(one.decoded_token or "", one.logprob) for _, one in ranked]
        own = rivals.get(token)
        found.append(
            TokenLogprob(
                "" if own is None else own.decoded_token or "", 0.0 if own is None else own.logprob, texts[:top], token
            )
        )
    return found


def _checked(extra: Mapping[str, Any], make: type[Any]) -> dict[str, Any]:
    """Return ``extra`` after checking each name and type.

    Raises:
        EngineError: an argument is unknown or has the wrong type; the message names it.
    """
    fields = {field.name: field for field in dataclasses.fields(make)}
    for name, value in extra.items():
        problem = ""
        if name in _PARSERS:
            problem = (
                "the gateway parses, not the engine: use --reasoning-parser, --tool-parser or --parser-backend vllm"
            )
        elif name in _OWN:
            problem = "cannot be set here"
        elif name not in fields:
            problem = "vLLM has no such engine argument" + did_you_mean(close_names(name, fields, 1))
        else:
            kind = type(fields[name].default)
            try:
                if kind in _NAMES and value is not None:
                    msgspec.convert(value, kind)
            except msgspec.ValidationError:
                problem = f"must be {_NAMES[kind]}, not {value!r}"
        if problem:
            raise EngineError(f"vllm.extra: {name}: {problem}", status=500, code="bad_setting")
    return dict(extra)


_NAMES: Final[dict[type, str]] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
