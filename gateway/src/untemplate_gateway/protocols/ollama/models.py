"""Ollama's endpoints for models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ...errors import bad_request
from ...manager.model import Model
from ..encoding import timestamp
from ..fields import Open, about


class ModelRequest(Open):
    """A request about one model."""

    model: Annotated[str | None, about("Name of the model.")] = None
    name: Annotated[str | None, about("The older name of `model`.")] = None


class PullRequest(ModelRequest, ignored="insecure"):
    """A request to download a model and load it."""

    stream: Annotated[bool | None, about("`false` answers once, at the end.")] = None


def name_of(asked: ModelRequest) -> str:
    """Return the name of the model that a request is about, without ``:latest``.

    Raises:
        ApiError: there is none.
    """
    name = (asked.model or asked.name or "").removesuffix(":latest")
    if not name:
        raise bad_request("model", "is required")
    return name


def tags(models: Sequence[Model | str]) -> dict[str, Any]:
    """Return the response of ``/api/tags``: the models that can be asked for. Of those that were never loaded, only the
    names are known.
    """
    return {"models": [_model(model) for model in models]}


def ps(models: Sequence[Model]) -> dict[str, Any]:
    """Return the response of ``/api/ps``: the loaded models. They never expire."""
    return {
        "models": [
            {
                **_model(model),
                "expires_at": "9999-12-31T23:59:59Z",
                "size_vram": model.details.get("size_vram", 0),
                "context_length": model.context_length or 0,
            }
            for model in models
        ]
    }


def _model(model: Model | str) -> dict[str, Any]:
    """Return a model of a list; the name alone stands for one that was never loaded."""
    if isinstance(model, str):
        name, created, details, family = model, 0, {}, ""
    else:
        name, created, details, family = model.name, model.created, model.details, _family(model)
    return {
        "name": name,
        "model": name,
        "modified_at": timestamp(created),
        "size": details.get("size", 0),
        "digest": details.get("digest", ""),
        "details": _details(details, family),
    }


def _family(model: Model) -> str:
    return model.details.get("family") or (model.capabilities.family if model.capabilities is not None else "unknown")


def _details(details: dict[str, Any], family: str) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": details.get("format", ""),
        "family": family,
        "families": details.get("families") or ([family] if family else []),
        "parameter_size": details.get("parameter_size", ""),
        "quantization_level": details.get("quantization_level", ""),
    }


def show(model: Model) -> dict[str, Any]:
    """Return the response of ``/api/show``. The template is the model's own one in Jinja, not in Go's language."""
    family = _family(model)
    info: dict[str, Any] = {"general.architecture": family, **model.details.get("model_info", {})}
    if model.context_length:
        info[f"{family}.context_length"] = model.context_length
    capabilities = ["completion"]
    if model.calls_tools:
        capabilities.append("tools")
    if model.thinks:
        capabilities.append("thinking")
    return {
        "license": model.details.get("license", ""),
        "modelfile": f"FROM {model.name}\n",
        "parameters": "",
        "template": "" if model.template is None else model.template.source,
        "details": _details(model.details, family),
        "model_info": info,
        "capabilities": capabilities,
        "modified_at": timestamp(model.created),
    }
