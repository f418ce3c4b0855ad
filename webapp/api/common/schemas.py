"""Base classes of request bodies, lists and responses."""

from typing import Any, Literal, get_origin

import msgspec
from django.http import HttpResponse
from ninja import Field, Schema
from ninja.pagination import LimitOffsetPagination
from pydantic import ConfigDict, ValidationError, create_model, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from webapp.core.errors import instead
from webapp.core.table_files import FORMATS

MAX_ITEMS = 500
MAX_PROBLEMS = 20  # that an answer names
# In openapi.json, the responses of an operation that sends a Parquet file.
PARQUET = {
    200: {
        "description": "A Parquet file.",
        "content": {FORMATS["parquet"].media_type: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class Input(Schema):
    """The base of every request body: unknown fields are refused by name, never ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def name_unknown_fields(cls, values: Any) -> Any:
        """Name the unknown field and the valid ones, which pydantic's own error does not."""
        known = cls.model_fields
        unknown = [name for name in values if name not in known] if isinstance(values, dict) else []
        if unknown:
            unknown = unknown[:MAX_PROBLEMS]
            raise ValidationError.from_exception_data(cls.__name__, [_unknown(name, list(known)) for name in unknown])
        return values


def _unknown(name: str, known: list[str]) -> InitErrorDetails:
    words = PydanticCustomError("unknown_field", "{words}", {"words": f"Unknown field. {instead(name, known)}"})
    return InitErrorDetails(type=words, loc=(name[:100],), input=None)


class Paged(LimitOffsetPagination):
    """`?limit=100&offset=0`; the response is {items, count}."""

    class Input(Schema):
        limit: int = Field(100, ge=1, le=MAX_ITEMS)
        offset: int = Field(0, ge=0, le=10_000_000)


def schema_of(kind: type[msgspec.Struct]) -> type[Schema]:
    """A description of a struct for openapi.json. Such responses are sent with `json_of`."""
    hints = {field.name: _described(field.type) for field in msgspec.structs.fields(kind)}
    made: type[Schema] = create_model(kind.__name__, __base__=Schema, __doc__=kind.__doc__, **_fields(hints))
    return made


def _fields(hints: dict[str, Any]) -> dict[str, Any]:
    return {name: (hint, ...) for name, hint in hints.items()}


def _described(hint: Any) -> Any:
    """The type hint with structs replaced by their descriptions, also inside tuples and unions."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    parts = getattr(hint, "__args__", None)
    if not parts or get_origin(hint) is Literal:
        return hint
    described = tuple(_described(part) for part in parts)
    if getattr(hint, "__origin__", None) is tuple:
        return tuple[described]  # type: ignore[valid-type]
    union = described[0]
    for part in described[1:]:
        union |= part
    return union


def json_of(struct: msgspec.Struct) -> HttpResponse:
    """A response with the struct, without further validation."""
    return HttpResponse(msgspec.json.encode(struct), content_type="application/json")
