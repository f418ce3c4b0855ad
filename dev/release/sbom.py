"""The bill of materials of a release: every package of other projects that it installs, as CycloneDX 1.6 JSON.

The packages of the server and the worker are those that this environment has installed, in their tested versions. Those
of the front end are in its lock file; only the ones that pages load are listed.
"""

import json
from collections.abc import Iterator
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any

from dev import worker_lock
from dev.stack.state import REPOSITORY

REQUIREMENTS = REPOSITORY / "requirements.txt"
NPM_LOCK = REPOSITORY / "frontend/package-lock.json"
SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"


def bill_of_materials(release: str, made_at: str) -> dict[str, Any]:
    """CycloneDX JSON of the release; `made_at` is a time of ISO 8601."""
    components = [*_python_packages(), *_npm_packages()]
    root = {"type": "application", "bom-ref": "sweetspot", "name": "sweetspot", "version": release}
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": made_at, "component": root},
        "components": components,
        "dependencies": [{"ref": "sweetspot", "dependsOn": [component["bom-ref"] for component in components]}],
    }


def _python_packages() -> Iterator[dict[str, Any]]:
    worker = worker_lock.required_names()
    server = worker_lock.with_requirements(_lines(REQUIREMENTS))
    for name in sorted(worker | server):
        parts = [part for part, names in (("server", server), ("worker", worker)) if name in names]
        yield _component("pypi", name, version(name), _python_license(name), parts)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def _python_license(name: str) -> dict[str, Any]:
    about = metadata(name)
    if "License-Expression" in about:
        return {"expression": about["License-Expression"]}
    classifiers = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier", []) if each.startswith("License")]
    return {"license": {"name": ", ".join(classifiers) or about["License"].splitlines()[0]}}


def _npm_packages() -> Iterator[dict[str, Any]]:
    for path, package in json.loads(NPM_LOCK.read_text())["packages"].items():
        if path and not package.get("dev") and not package.get("optional"):
            name = path.rpartition("node_modules/")[2]
            yield _component("npm", name, package["version"], {"expression": package["license"]}, ["pages"])


def _component(kind: str, name: str, number: str, license_entry: dict[str, Any], parts: list[str]) -> dict[str, Any]:
    address = f"pkg:{kind}/{name.replace('@', '%40')}@{number}"
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": number,
        "purl": address,
        "licenses": [license_entry],
        "properties": [{"name": "sweetspot:part", "value": part} for part in parts],
    }
