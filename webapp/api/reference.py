"""The reference of the API as a page, made from openapi.json. Public like it, and without scripts of other sites."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI

Json = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A parameter, or a field of an object. `links`: the schemas in its type."""

    name: str
    type: str
    links: tuple[str, ...]
    required: bool
    default: str  # as JSON; "" for none
    text: str


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    text: str
    parameters: tuple[Field, ...]
    body: tuple[str, ...]  # schemas
    form: tuple[Field, ...]
    example: str  # of the body, as JSON
    status: str  # of success
    answer: str  # type
    answer_links: tuple[str, ...]

    @property
    def anchor(self) -> str:
        return f"{self.method}{self.path}".lower().replace("/", "-").replace("{", "").replace("}", "")


@dataclass(frozen=True)
class Object:
    name: str
    text: str
    values: tuple[str, ...]  # of an enumeration
    fields: tuple[Field, ...]


@cache
def operations(api: NinjaAPI) -> tuple[tuple[str, tuple[Operation, ...]], ...]:
    """The operations by subject."""
    schema = api.get_openapi_schema()
    found = [
        (described["tags"][0], _operation(method, path, described, schema["components"]["schemas"]))
        for path, methods in schema["paths"].items()
        for method, described in methods.items()
    ]
    by_subject = groupby(sorted(found, key=lambda one: one[0]), key=lambda one: one[0])
    return tuple((subject, tuple(operation for _, operation in group)) for subject, group in by_subject)


@cache
def objects(api: NinjaAPI) -> tuple[Object, ...]:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    return tuple(
        Object(name, one.get("description", ""), tuple(one.get("enum", ())), tuple(_fields(one)))
        for name, one in sorted(schemas.items())
    )


def reference(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    return render(request, "screens/api_reference.html", {"subjects": operations(api), "objects": objects(api)})


def reference_of(api: NinjaAPI) -> Any:
    """The view."""
    return require_safe(lambda request: reference(request, api))


def _operation(method: str, path: str, described: Json, schemas: dict[str, Json]) -> Operation:
    contents = described.get("requestBody", {}).get("content", {})
    body = contents.get("application/json", {}).get("schema", {})
    status, answer = next((code, one) for code, one in described["responses"].items() if code in _SUCCESS)
    returned = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return Operation(
        method=method.upper(),
        path=path,
        text=described["description"],
        parameters=tuple(_parameter(one) for one in described.get("parameters", ())),
        body=tuple(_links(body)),
        form=tuple(field for kind, form in contents.items() if "json" not in kind for field in _fields(form["schema"])),
        example=_example(body, schemas),
        status=str(status),
        answer=_type(returned) if returned else "nothing" if str(status) != "200" else "a file",
        answer_links=tuple(_links(returned)),
    )


_SUCCESS = (200, 201, 202, 204, "200", "201", "202", "204")


def _example(body: Json, schemas: dict[str, Json]) -> str:
    for name in _links(body):
        for example in schemas[name].get("examples", ()):
            return json.dumps(example, indent=2, ensure_ascii=False)
    return ""


def _parameter(one: Json) -> Field:
    return _field(one["name"], one["schema"], text=one["description"], required=one.get("required", False))


def _fields(schema: Json) -> Iterator[Field]:
    for name, one in schema.get("properties", {}).items():
        yield _field(name, one, text=one.get("description", ""), required=name in schema.get("required", ()))


def _field(name: str, schema: Json, *, text: str, required: bool) -> Field:
    default = json.dumps(schema["default"], ensure_ascii=False) if schema.get("default") is not None else ""
    return Field(name, _type(schema), tuple(_links(schema)), required, default, text)


def _type(schema: Json) -> str:
    """The type in words: `integer or null`, `list of RunOut`."""
    if "$ref" in schema:
        return _name(schema)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    for several in ("anyOf", "allOf"):
        if several in schema:
            return " or ".join(_type(one) for one in schema[several])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(schema.get("format", kind))


def _links(schema: Json) -> Iterator[str]:
    if "$ref" in schema:
        yield _name(schema)
    items = schema.get("items")
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ()), *([items] if items else [])):
        yield from _links(part)


def _name(schema: Json) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]
