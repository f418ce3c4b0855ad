"""Pools of drives."""

from webapp.plans.fitness import TargetFacts
from webapp.plans.layouts import DriveFacts
from webapp.plans.tests.helpers import GIB, device
from worker.contract.workload import TargetKind


def pool(drives: int = 4, slots: tuple[DriveFacts, ...] = (), **given: object) -> TargetFacts:
    each = slots or tuple(DriveFacts(f"a/d{n}", f"/dev/sd{'bcdefgh'[n]}", 10 * GIB) for n in range(drives))
    facts = {"id": "rack", "kind": TargetKind.POOL, "path": "/dev", "name": "a/rack", "serial": "", "drives": each}
    return device(**(facts | {"size_bytes": drives * 10 * GIB} | given))
