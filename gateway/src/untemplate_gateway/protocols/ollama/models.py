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
    return {"models": [_named(model) if isinstance(model, str) else _model(model) for model in models]}


def _named(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": timestamp(0),
        "size": 0,
        "digest": "",
        "details": dict.fromkeys(("parent_model", "format", "family", "parameter_size", "quantization_level"), "")
        | {"families": []},
    }


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


def _model(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": timestamp(model.created),
        "size": model.details.get("size", 0),
        "digest": model.details.get("digest", ""),
        "details": _details(model),
    }


def _details(model: Model) -> dict[str, Any]:
    details = model.details
    family = details.get("family") or (model.capabilities.family if model.capabilities is not None else "unknown")
    return {
        "parent_model": "",
        "format": details.get("format", ""),
        "family": family,
        "families": details.get("families") or [family],
        "parameter_size": details.get("parameter_size", ""),
        "quantization_level": details.get("quantization_level", ""),
    }


def show(model: Model) -> dict[str, Any]:
    """Return the response of ``/api/show``. The template is the model's own one in Jinja, not in Go's language."""
    details = _details(model)
    info: dict[str, Any] = {"general.architecture": details["family"], **model.details.get("model_info", {})}
    if model.context_length:
        info[f"{details['family']}.context_length"] = model.context_length
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
        "details": details,
        "model_info": info,
        "capabilities": capabilities,
        "modified_at": timestamp(model.created),
    }


def version(number: str) -> dict[str, Any]:
    """Return the response of ``/api/version``."""
    return {"version": number}
