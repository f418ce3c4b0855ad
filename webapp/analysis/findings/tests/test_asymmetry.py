"""Drives and hosts that should be equal: which of them stands apart, by how much, and what differs with it."""

import random
from collections.abc import Mapping

import pytest

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.comparing import compare
from webapp.analysis.known_ceilings import LINK_FACT, NUMA_FACT, KnownCeilings
from webapp.analysis.question import CompareQuery
from webapp.analysis.run_answer import run_answer
from webapp.analysis.tests.orders import alternate
from webapp.hosts.inventory.links import read_link
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
SPEEDS = {"a": 1.0, "b": 1.0, "c": 0.8, "d": 1.0}


def a_lab(
    speeds: Mapping[str, float], firmwares: Mapping[str, str], *, models: Mapping[str, str] | None = None,
    noise: float = 0.01, repeats: int = 5,
) -> Lab:  # fmt: skip
    """Drives of one host at two queue depths, each block in another order."""
    host, chance, lab = a_host("h"), random.Random(3), None
    for slug, speed in speeds.items():
        model = (models or {}).get(slug, "PM983")
        drive = a_drive(host, slug, model=model, serial=slug.upper())
        lab = lab or Lab(drive)
        lab.run.targets.add(drive)
        facts = {f"device.{slug}.model": model, f"device.{slug}.firmware": firmwares.get(slug, "2")}
        for depth in (1, 32):
            values = [1000 * depth * speed * chance.lognormvariate(0, noise) for _ in range(repeats)]
            lab.measure(*values, target=drive, facts=facts | {"stream.0.target": slug}, iodepth=depth)
    assert lab is not None
    alternate(lab.run)
    return lab


def asymmetries(baseline: str = "") -> list[Finding]:
    found = compare(CompareQuery("iodepth", ("target",), baseline=baseline)).findings
    return [each for each in found if each.kind is FindingKind.ASYMMETRY]


@pytest.mark.parametrize("baseline", ["", "h/c", "h/d"])
def test_the_drive_that_stands_apart_is_named_with_what_differs(db: None, baseline: str) -> None:
    a_lab(SPEEDS, {"c": "1"})
    (one,) = asymmetries(baseline)
    assert one.about == "iops: h/c"
    assert [(mark.panel, mark.series) for mark in one.marks] == [(0, 2)]
    assert "Firmware (1 against 2) differs" in one.sentence
    assert one.size == pytest.approx(0.223, abs=0.03)


def test_of_two_the_slower_one_is_named(db: None) -> None:
    a_lab({"a": 1.0, "b": 1.3}, {})
    (one,) = asymmetries()
    assert one.about == "iops: h/a"
    assert "No recorded fact differs" in one.sentence


@pytest.mark.parametrize(
    "speeds",
    [
        {"a": 1.0, "b": 1.0, "c": 0.99},  # equal
        {"a": 1.0, "b": 0.97, "c": 1.0},  # within the margin
        {"a": 1.0, "b": 0.8, "c": 0.6},  # no two are alike
        {"a": 1.0, "b": 1.0, "c": 0.8, "d": 0.8},  # no majority
        {"a": 1.0, "b": 1.0, "c": 0.8, "d": 1.25},  # both ways
    ],
)
def test_it_is_silent_without_a_clear_majority(db: None, speeds: Mapping[str, float]) -> None:
    a_lab(speeds, {})
    assert asymmetries() == []


def test_it_is_silent_without_a_claim(db: None) -> None:
    a_lab({"a": 1.0, "b": 0.8}, {}, repeats=2)
    assert asymmetries() == []


def test_drives_of_different_models_need_not_be_equal(db: None) -> None:
    a_lab({"a": 1.0, "b": 0.8}, {}, models={"b": "PM1733"})
    assert asymmetries() == []


def test_targets_measured_at_other_points_are_no_equals(db: None) -> None:
    lab = a_lab({"a": 1.0}, {})
    drive = a_drive(lab.target.host, "b", model="PM983", serial="B")
    facts = {"device.b.model": "PM983", "device.b.firmware": "2"}
    for depth in (1, 32):
        lab.measure(
            *(700.0 * depth * one for one in (1.0, 1.01, 0.99)), target=drive, facts=facts, iodepth=depth, numjobs=4
        )
    alternate(lab.run)
    assert asymmetries() == []


def test_a_run_states_it_instead_of_the_difference(db: None) -> None:
    lab = a_lab(SPEEDS, {"c": "1"})
    kinds = [each.kind for each in run_answer(lab.run).findings]
    assert kinds[0] is FindingKind.ASYMMETRY
    assert FindingKind.DIFFERENCE not in kinds


def test_links_and_the_numa_node_of_a_target_are_facts() -> None:
    links = {"h/a": [[read_link("SATA 6G"), read_link("PCIe 3.0 x8")]]}
    known = KnownCeilings((), (), links, {}, {"h/a": 1})
    assert known.equipment("h/a") == {LINK_FACT: "SATA 6G, PCIe 3.0 x8", NUMA_FACT: "1"}
    assert known.equipment("h/b") == {}
