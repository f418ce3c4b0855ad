"""Targets and documents for the tests of this app and of those above it."""

from collections.abc import Mapping

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.fitness import TargetFacts
from worker.contract.workload import TargetKind

GIB = 2**30


def directory(**given: object) -> TargetFacts:
    return _target({"id": "dir", "kind": TargetKind.DIRECTORY, "path": "/srv/scratch", "name": "a/scratch"} | given)


def device(**given: object) -> TargetFacts:
    return _target({"id": "loop", "kind": TargetKind.BLOCK, "path": "/dev/loop9", "name": "a/loop"} | given)


def _target(given: dict[str, object]) -> TargetFacts:
    common: dict[str, object] = {
        "stable_id": f"x:{given['path']}",
        "serial": "S1",
        "size_bytes": 10 * GIB,
        "settings_allowed": ("*",),
        "host_settings_allowed": ("*",),
        "destroy": True,
        "host_id": "host-a",
    }
    return TargetFacts(**(common | given))  # type: ignore[arg-type]


def document(*parts: Part, **given: object) -> PlanDocument:
    common: dict[str, object] = {
        "title": "Test",
        "common": {"size": "64M", "runtime": "3s"},
        "repeats": 2,
        "order": Order.RANDOMISED,
    }
    return PlanDocument(parts=parts, **(common | given))  # type: ignore[arg-type]


def part(
    name: str = "main",
    grid: Mapping[str, str] | None = None,
    *,
    on: tuple[str, ...] = ("block", "directory", "file"),
    **factors: str,
) -> Part:
    return Part(name=name, on=on, factors={"pattern": "randread"} | dict(grid or {}) | factors)
