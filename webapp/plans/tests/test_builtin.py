"""The built-in plans: each runs on some kind of target, and its note says what it destroys and where it comes from."""

from dataclasses import replace
from pathlib import Path

import pytest

from webapp.plans.document import PlanDocument, import_plan
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.grids import document_problems
from webapp.plans.layouts import DriveFacts
from webapp.plans.preflight import destroys
from webapp.plans.services import BUILTIN
from webapp.plans.tests.helpers import GIB, device, directory
from worker.contract.workload import TargetKind

LARGE = 500 * GIB
DRIVES = tuple(
    DriveFacts(f"a/d{n}", f"/dev/sd{letter}", LARGE, purges={"discard": ""}) for n, letter in enumerate("bcdefghi")
)
POOL = device(id="rack", kind=TargetKind.POOL, path="/dev", name="a/rack", serial="", drives=DRIVES, size_bytes=LARGE)
TARGETS = (
    (directory(size_bytes=LARGE, memory_bytes=64 * GIB),),
    (device(size_bytes=LARGE, purges={"discard": ""}),),
    (POOL,),
    (replace(POOL, drives=DRIVES[:4]), replace(POOL, id="back", name="a/back", drives=DRIVES[4:])),
    tuple(directory(id=f"d{n}", path=f"/srv/{n}", name=f"a/{n}", size_bytes=LARGE) for n in range(4)),
    tuple(directory(id=f"h{n}", host_id=f"h{n}", name=f"h{n}/nas", size_bytes=LARGE) for n in range(4)),
)


@pytest.fixture(params=sorted(BUILTIN.glob("*.yaml")), ids=lambda path: path.stem)
def document(request: pytest.FixtureRequest) -> PlanDocument:
    path: Path = request.param
    return import_plan(path.read_text(encoding="utf-8"))


def expansions(document: PlanDocument) -> list[Expansion]:
    found = [expand(document, targets, seed=1) for targets in TARGETS]
    return [one for one in found if one.trials]


def test_it_is_sound_and_runs_without_problems_on_some_targets(document: PlanDocument) -> None:
    assert document_problems(document) == ()
    assert [one for one in expansions(document) if not one.problems]


def test_all_its_factors_have_an_effect(document: PlanDocument) -> None:
    assert factor_warnings(document) == ()


def test_it_takes_less_than_a_day(document: PlanDocument) -> None:
    """On one target, without trials that an amount ends."""
    runnable = [one for one in expansions(document) if not one.problems and len(one.targets) == 1]
    assert all(estimate(one).seconds < 86_400 for one in runnable)


def test_its_note_says_what_it_destroys(document: PlanDocument) -> None:
    """Data on whole drives: by a layout, a purge, or writes to a block device."""
    overwrites = any(
        destroys(trial.workload, trial.kind, trial.layouts[0], trial.before)
        for one in expansions(document)
        for trial in one.trials
    )
    assert ("destroys all data" in document.note) == overwrites


def test_it_is_in_the_table_of_the_docs(document: PlanDocument) -> None:
    table = (BUILTIN.parents[2] / "docs/reference/plan-library.md").read_text(encoding="utf-8")
    title = document.title.removesuffix(" (after SNIA PTS)").split(" by mix")[0].split(" at queue")[0]
    assert title in table
