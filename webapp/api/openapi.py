"""openapi.json: what django-ninja derives from the code, with descriptions, examples, the plan document and errors.

The folder `descriptions` has the texts: `fields.toml`, `parameters.toml` and `examples.toml`.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from webapp.api.common.errors import Problem
from webapp.plans.document import Levels, PlanDocument

Json = dict[str, Any]

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
    "results": "What was measured.",
    "imports": "Results of other tools.",
    "schedules": "When runs start by themselves.",
    "compare": "Comparisons, and verdicts on two selections of results.",
    "baselines": "Baselines, and the verdict on a run.",
    "bench": "Products side by side.",
    "notices": "Messages about runs by e-mail or webhook.",
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
    _, found = msgspec.json.schema_components([PlanDocument], ref_template="#/components/schemas/{name}")
    text = msgspec.json.schema(Levels)
    for name in ("PlanDocument", "Part", "PartStream"):
        for field in found[name]["properties"].values():
            if "propertyNames" in field:
                field["additionalProperties"] = {"anyOf": [text, _LISTED_LEVELS]}
    plain: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(found).replace(rb"\\Z", b"$"))
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
