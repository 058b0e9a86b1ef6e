"""Lets pydantic, and so FastAPI, take the message types as fields and as response models.

pydantic is imported only here, and only when it asks for a schema.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["core_schema", "json_schema"]


def core_schema(cls: Any) -> Any:
    """Return how pydantic reads and dumps a message type: an instance as it is, a dict by the types of its fields."""
    from pydantic_core import core_schema as core

    def read(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, dict) and "reasoning_content" in value and "reasoning" in cls.__struct_fields__:
            value = {"reasoning": value["reasoning_content"], **value}
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    def dump(value: Any, info: Any) -> dict[str, Any]:
        dumped: dict[str, Any] = value.model_dump(exclude_none=info.exclude_none, exclude_unset=info.exclude_unset)
        return dumped

    return core.no_info_plain_validator_function(
        read, serialization=core.plain_serializer_function_ser_schema(dump, info_arg=True)
    )


def json_schema(cls: Any) -> dict[str, Any]:
    """Return the JSON Schema of a message type, with nested types in place."""
    schema = msgspec.json.schema(cls)
    definitions = schema["$defs"]

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inlined(definitions[part["$ref"].rpartition("/")[2]])
        return {key: inlined(value) for key, value in part.items()}

    whole: dict[str, Any] = inlined(definitions[cls.__name__])
    return whole
