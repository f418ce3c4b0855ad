"""openapi.json describes every operation, parameter and field, and its examples are valid."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from ninja import Schema

from webapp.api import openapi
from webapp.api.urls import api

TEXTS = Path(openapi.__file__).parent / "descriptions"


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = api.get_openapi_schema()["components"]["schemas"]
    return found


def texts(name: str) -> dict[str, Any]:
    return tomllib.loads((TEXTS / f"{name}.toml").read_text(encoding="utf-8"))


def operations() -> Iterator[tuple[str, Any]]:
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def fields() -> Iterator[tuple[str, str, Any]]:
    form = api.get_openapi_schema()["paths"]["/api/v1/imports"]["post"]["requestBody"]["content"][
        "multipart/form-data"
    ]["schema"]
    for name, schema in (schemas() | {"Form": form}).items():
        for field, described in schema.get("properties", {}).items():
            yield name, field, described


def bodies() -> set[str]:
    """Names of the schemas of requests as JSON."""
    contents = [operation.get("requestBody", {}).get("content", {}) for _, operation in operations()]
    return {one["application/json"]["schema"]["$ref"].split("/")[-1] for one in contents if "application/json" in one}


def test_every_operation_is_described() -> None:
    assert [name for name, operation in operations() if not operation.get("description")] == []


def test_every_parameter_is_described() -> None:
    parameters = [(name, one) for name, operation in operations() for one in operation.get("parameters", ())]
    assert len(parameters) > 200
    assert [(name, one["name"]) for name, one in parameters if not one.get("description", "").strip()] == []


def test_every_field_is_described() -> None:
    assert len(list(fields())) > 800
    without = [f"{name}.{field}" for name, field, one in fields() if not one.get("description", "").strip()]
    assert without == []


def test_every_text_is_used() -> None:
    names = {field for _, field, _ in fields()} | {f"{name}.{field}" for name, field, _ in fields()}
    assert set(texts("fields")) - names == set()
    assert set(texts("examples")) - bodies() == set()
    known = {one["name"] for _, operation in operations() for one in operation.get("parameters", ())}
    assert {name.split("/")[-1] for name in texts("parameters")} - known == set()


def test_every_body_has_a_valid_example() -> None:
    assert bodies() - set(texts("examples")) == set()
    for name, example in texts("examples").items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas()}}
        if name in schemas():
            jsonschema_rs.validate(schema, example)


def test_a_plan_with_an_unknown_field_does_not_fit_its_schema() -> None:
    schema = {"$ref": "#/components/schemas/PlanIn", "components": {"schemas": schemas()}}
    plan = texts("examples")["PlanIn"]["document"]
    jsonschema_rs.validate(schema, {"document": plan})
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {"document": plan | {"repeat": 3}})


def test_no_two_schemas_have_the_same_name() -> None:
    """django-ninja would describe both by one of them."""

    def below(kind: type[Schema]) -> Iterator[type[Schema]]:
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    ours = [kind.__name__ for kind in set(below(Schema)) if kind.__module__.rpartition(".")[0] == "webapp.api"]
    assert sorted(name for name in set(ours) if ours.count(name) > 1) == []


def test_all_tags_are_described() -> None:
    used = {
        tag for methods in api.get_openapi_schema()["paths"].values() for one in methods.values() for tag in one["tags"]
    }
    assert used == {tag["name"] for tag in api.get_openapi_schema()["tags"]}


def test_it_is_computed_once() -> None:
    assert api.get_openapi_schema(path_params={}) is api.get_openapi_schema()
