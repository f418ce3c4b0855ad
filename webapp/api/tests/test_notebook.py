"""The notebook in docs: its code is Python, and its requests fit openapi.json."""

import ast
import json
import re

import jsonschema_rs

from webapp.api.urls import api
from webapp.tests.system import ROOT

NOTEBOOK = json.loads((ROOT / "docs" / "how-to" / "notebook.ipynb").read_text())
CODE = "\n".join("".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code")
CALLS = [(method, path.partition("?")[0]) for method, path in re.findall(r'call\("(\w+)", f?"([^"]+)"', CODE)]


def pattern(path: str) -> str:
    return re.sub(r"\{\w+\}", "[^/]+", path)


def test_its_requests_are_operations_of_the_api() -> None:
    ast.parse(CODE)
    assert len(CALLS) == 5
    paths = api.get_openapi_schema()["paths"]
    for method, path in CALLS:
        known = [operation for operation in paths if re.fullmatch(pattern(operation), f"/api/v1{path}")]
        assert any(method.lower() in paths[operation] for operation in known), (method, path)


def test_its_plan_and_its_fields_fit_their_schemas() -> None:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    names: dict[str, object] = {}
    for line in CODE.splitlines():
        if line.startswith(("factors =", "common =", "plan =")):
            exec(line, names)
    schema = {"$ref": "#/components/schemas/PlanDocument", "components": {"schemas": schemas}}
    jsonschema_rs.validate(schema, names["plan"])
    assert {"plan", "targets", "armed_serials"} <= set(schemas["StartIn"]["properties"])
    assert {"number", "state"} <= set(schemas["RunDetail"]["properties"])
    assert {"arm", "problems"} <= set(schemas["PreviewOut"]["properties"])
    assert {"point", "iops", "p99_ns"} <= set(schemas["ResultOut"]["properties"])
