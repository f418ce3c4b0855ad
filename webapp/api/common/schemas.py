"""What request bodies, lists and answers share."""

from typing import Any

import msgspec
from django.http import HttpResponse
from ninja import Field, Schema
from ninja.pagination import LimitOffsetPagination
from pydantic import ConfigDict, create_model

MAX_ITEMS = 500


class Input(Schema):
    """Base of every request body: a field that it does not have is refused by its name, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Paged(LimitOffsetPagination):
    """`?limit=100&offset=0`; the answer is {items, count}."""

    class Input(Schema):
        limit: int = Field(100, ge=1, le=MAX_ITEMS)
        offset: int = Field(0, ge=0, le=10_000_000)


def schema_of(kind: type[msgspec.Struct]) -> type[Schema]:
    """A description of a struct for openapi.json. Such answers are sent with `json_of`."""
    hints = {field.name: _described(field.type) for field in msgspec.structs.fields(kind)}
    made: type[Schema] = create_model(kind.__name__, __base__=Schema, __doc__=kind.__doc__, **_fields(hints))
    return made


def _fields(hints: dict[str, Any]) -> dict[str, Any]:
    return {name: (hint, ...) for name, hint in hints.items()}


def _described(hint: Any) -> Any:
    """The hint with structs replaced by their descriptions, inside tuples and unions too."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    parts = getattr(hint, "__args__", None)
    if not parts:
        return hint
    described = tuple(_described(part) for part in parts)
    if getattr(hint, "__origin__", None) is tuple:
        return tuple[described]  # type: ignore[valid-type]
    union = described[0]
    for part in described[1:]:
        union |= part
    return union


def json_of(struct: msgspec.Struct) -> HttpResponse:
    """The struct as it is, without another validation."""
    return HttpResponse(msgspec.json.encode(struct), content_type="application/json")
