"""openapi.json: what django-ninja derives from the code, with descriptions, examples, the plan document and errors.

The folder `descriptions` has the texts: `fields.toml`, `parameters.toml` and `examples.toml`.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from webapp.api.common.errors import Problem
from webapp.plans.document import Levels, PlanDocument

# The reference of the API as a page, made from openapi.json. Public like it, and without scripts of other sites.

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
    described_operations = [
        (described["tags"][0], _operation(method, path, described, schema["components"]["schemas"]))
        for path, methods in schema["paths"].items()
        for method, described in methods.items()
    ]
    by_subject = groupby(
        sorted(described_operations, key=lambda tag_and_operation: tag_and_operation[0]),
        key=lambda tag_and_operation: tag_and_operation[0],
    )
    return tuple((subject, tuple(operation for _, operation in group)) for subject, group in by_subject)


@cache
def objects(api: NinjaAPI) -> tuple[Object, ...]:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    return tuple(
        Object(name, schema.get("description", ""), tuple(schema.get("enum", ())), tuple(_fields(schema)))
        for name, schema in sorted(schemas.items())
    )


def reference(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    return render(request, "screens/api_reference.html", {"subjects": operations(api), "objects": objects(api)})


def reference_of(api: NinjaAPI) -> Any:
    """The view."""
    return require_safe(lambda request: reference(request, api))


def _operation(method: str, path: str, described: Json, schemas: dict[str, Json]) -> Operation:
    contents = described.get("requestBody", {}).get("content", {})
    body = contents.get("application/json", {}).get("schema", {})
    status, answer = next((code, response) for code, response in described["responses"].items() if code in _SUCCESS)
    returned = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return Operation(
        method=method.upper(),
        path=path,
        text=described["description"],
        parameters=tuple(_parameter(parameter) for parameter in described.get("parameters", ())),
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


def _parameter(parameter: Json) -> Field:
    return _field(
        parameter["name"], parameter["schema"], text=parameter["description"], required=parameter.get("required", False)
    )


def _fields(schema: Json) -> Iterator[Field]:
    for name, property_schema in schema.get("properties", {}).items():
        yield _field(
            name,
            property_schema,
            text=property_schema.get("description", ""),
            required=name in schema.get("required", ()),
        )


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
            return " or ".join(_type(alternative) for alternative in schema[several])
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


# The error responses of every operation; the body is always a Problem.
ERRORS = {
    "400": "The request cannot be read.",
    "401": "No session and no valid API token.",
    "403": "Your role may not do this.",
    "404": "Not found.",
    "409": "Not possible in the current state.",
    "411": "The request has no Content-Length.",
    "413": "The body is too large.",
    "422": "A value in the request is not valid.",
    "500": "The server failed; its log has the reason.",
    "503": "The server is busy with other uploads or exports; try again later.",
}
# The subjects, in the order of the reference.
TAGS = {
    "people": "People and their roles, for admins.",
    "hosts": "Storage servers with their targets, and actions on them.",
    "plans": "What is measured, in versions.",
    "runs": "Executions of plans: start, watch, change.",
    "findings": "What runs and imports found, and what people think of it.",
    "results": "What was measured.",
    "imports": "Results of other tools.",
    "schedules": "When runs start by themselves.",
    "compare": "Comparisons, and verdicts on two selections of results.",
    "baselines": "Baselines, and the verdict on a run.",
    "bench": "Products side by side.",
    "notices": "Messages about runs by e-mail or webhook.",
    "storage": "Size and growth of the database, for admins.",
}
_TEXTS = Path(__file__).parent / "descriptions"
_LISTED_LEVELS = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}


class Api(NinjaAPI):
    def get_openapi_schema(self, **_options: Any) -> OpenAPISchema:
        """The same for every request, because the API has one address without parameters."""
        return self._schema

    @cached_property
    def _schema(self) -> OpenAPISchema:
        """Computed once: it takes half a second of CPU time."""
        schema = super().get_openapi_schema()
        schemas = schema["components"]["schemas"]
        schemas |= _plan_schemas() | {"Problem": Problem.model_json_schema()}
        _type_plan_documents(schemas)
        for form in _forms(schema):
            _describe_fields({"Form": form})
        _describe_fields(schemas)
        _add_examples(schemas)
        for path, methods in schema["paths"].items():
            _describe_parameters(path, methods)
        _add_errors(schema)
        _drop_unused(schema)
        schema["servers"] = [{"url": "/", "description": "this server"}]
        schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
        schema["info"]["contact"] = {"name": "the administrator of this server"}
        return schema


def _plan_schemas() -> dict[str, Json]:
    """The plan document and its parts. A request may also list levels: `[4k, 8k]` is `4k, 8k`."""
    _, schemas = msgspec.json.schema_components([PlanDocument], ref_template="#/components/schemas/{name}")
    text = msgspec.json.schema(Levels)
    for name in ("PlanDocument", "Part", "PartStream"):
        for field in schemas[name]["properties"].values():
            if "propertyNames" in field:
                field["additionalProperties"] = {"anyOf": [text, _LISTED_LEVELS]}
    plain: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(schemas).replace(rb"\\Z", b"$"))
    return plain


def _type_plan_documents(schemas: dict[str, Json]) -> None:
    for schema in schemas.values():
        field = schema.get("properties", {}).get("document", {})
        for kind in (field, *field.get("anyOf", ())):
            if kind.get("type") == "object":
                kind.clear()
                kind["$ref"] = "#/components/schemas/PlanDocument"


def _forms(schema: OpenAPISchema) -> Iterator[Json]:
    """Bodies that are forms: their schemas have no name."""
    for methods in schema["paths"].values():
        for operation in methods.values():
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                if kind != "application/json":
                    yield body["schema"]


def _describe_fields(schemas: dict[str, Json]) -> None:
    texts = _read("fields")
    for name, schema in schemas.items():
        for field, described in schema.get("properties", {}).items():
            text = texts.get(f"{name}.{field}", texts.get(field))
            if text and not described.get("description"):
                described["description"] = text


def _add_examples(schemas: dict[str, Json]) -> None:
    for name, example in _read("examples").items():
        if name in schemas:
            schemas[name]["examples"] = [example]


def _describe_parameters(path: str, methods: dict[str, Json]) -> None:
    texts, area = _read("parameters"), path.removeprefix("/api/v1/").split("/")[0]
    for parameter in _parameters(methods):
        name = parameter["name"]
        text = texts.get(f"{area}/{name}", texts.get(name))
        if text and not parameter.get("description"):
            parameter["description"] = parameter["schema"].get("description", text)


def _parameters(methods: dict[str, Json]) -> Iterator[Json]:
    for operation in methods.values():
        yield from operation.get("parameters", ())


def _add_errors(schema: OpenAPISchema) -> None:
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    schema["components"]["responses"] = {
        f"Error{status}": {"description": words, "content": body} for status, words in ERRORS.items()
    }
    errors: Json = {status: {"$ref": f"#/components/responses/Error{status}"} for status in ERRORS}
    errors["414"] = {"description": "The address has more than 4,094 bytes. The answer is a page of text."}
    for methods in schema["paths"].values():
        for operation in methods.values():
            operation["responses"] |= errors


def _drop_unused(schema: OpenAPISchema) -> None:
    """Drop schemas of query parameters, which django-ninja lists beside the parameters themselves."""
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema, default=str)))
    schemas = schema["components"]["schemas"]
    for name in schemas.keys() - used:
        del schemas[name]


@cache
def _read(name: str) -> Json:
    return tomllib.loads((_TEXTS / f"{name}.toml").read_text(encoding="utf-8"))
