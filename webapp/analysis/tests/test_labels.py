"""Labels of hosts as a factor: what follows from them, and what still confounds."""

import pytest

from webapp.analysis.answer import Comparison, DifferenceKind
from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery
from webapp.results.reading.filter import read_filter
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS, Lab

pytestmark = pytest.mark.django_db

LABELS = CompareQuery(x="iodepth", series=("label",))


@pytest.fixture
def labs() -> tuple[Lab, Lab]:
    """Two hosts of a group, each with its own run of the same plan."""
    version = a_version(slug="plan")
    made = [
        Lab(a_target(a_host(host), "scratch", serial=serial, model=model), version=version, number=number)
        for number, (host, serial, model) in enumerate((("a", "S1", "PM9A3"), ("b", "S2", "D7")), start=1)
    ]
    for lab, label in zip(made, ("adaptec", "broadcom"), strict=True):
        label_run(lab, label)
    return made[0], made[1]


def label_run(lab: Lab, label: str) -> None:
    lab.run.label = label
    lab.run.save(update_fields=["label"])


def measure(*labs: Lab, **given: object) -> None:
    for factor, lab in enumerate(labs, start=1):
        lab.measure(99.0 * factor, 100.0 * factor, 101.0 * factor, **given)  # type: ignore[arg-type]


def kinds(made: Comparison) -> dict[tuple[str, str], str]:
    return {(one.name, str(one.kind)): one.text for one in made.differs}


def test_target_and_run_follow_from_labels_of_one_host_each(labs: tuple[Lab, Lab]) -> None:
    measure(*labs)
    made = compare(LABELS)
    assert [series.name for series in made.panels[0].series] == ["adaptec", "broadcom"]
    assert kinds(made) == {
        ("target", "follows"): "Target differs between series because each label belongs to a different host.",
        ("run", "follows"): "Run differs between series because each label belongs to a different host.",
    }
    assert (made.single_factor, made.verdict) == (True, "Single-factor: series differ in Label alone.")
    assert "broadcom has ×2.00" in made.panels[0].series[1].sentence


def test_without_labels_the_same_is_confounded(labs: tuple[Lab, Lab]) -> None:
    measure(*labs)
    assert compare(CompareQuery(x="iodepth", series=("run",))).verdict == "Confounded by Target."


def test_another_kernel_or_fio_still_confounds(labs: tuple[Lab, Lab]) -> None:
    labs[0].measure(1.0, 2.0)
    labs[1].measure(2.0, 3.0, facts=FACTS | {"kernel.release": "6.18.0"}, fio="fio-3.39")
    assert compare(LABELS).verdict == "Confounded by Kernel, engine version."


def test_a_label_of_several_hosts_is_said(labs: tuple[Lab, Lab]) -> None:
    third = Lab(a_target(a_host("c"), "scratch"), version=labs[0].version, number=3)
    label_run(third, "adaptec")
    measure(*labs, third)
    made = compare(LABELS)
    assert kinds(made)["host", "pooled"] == (
        "The label “adaptec” stands for several hosts (a, c); its values combine all of them."
    )
    assert ("target", "follows") not in kinds(made)
    assert not made.single_factor


def test_two_labels_of_one_host_do_not_tell_its_targets(labs: tuple[Lab, Lab]) -> None:
    other = Lab(a_target(labs[0].target.host, "nvme1"), version=labs[0].version, number=3)
    label_run(other, "again")
    measure(labs[0], other)
    assert ("target", "confounded") in kinds(compare(LABELS))


def test_a_target_that_goes_with_the_engine_confounds_also_beside_a_label(labs: tuple[Lab, Lab]) -> None:
    measure(*labs)
    for lab in labs:
        other = a_target(lab.target.host, "nvme1")
        lab.measure(5.0, 6.0, ioengine="psync", target=other)
    found = kinds(compare(CompareQuery(x="iodepth", series=("label", "ioengine"))))
    assert ("target", "confounded") in found
    assert ("run", "follows") in found


def test_labels_on_x_and_in_charts(labs: tuple[Lab, Lab]) -> None:
    measure(*labs)
    measure(*labs, ioengine="psync")
    on_x = compare(CompareQuery(x="label", series=("ioengine",)))
    assert kinds(on_x) == {
        ("target", "follows"): "Target changes along x because each label belongs to a different host.",
    }
    charts = compare(CompareQuery(x="iodepth", series=("ioengine",), panel="label"))
    assert [panel.name for panel in charts.panels] == ["adaptec", "broadcom"]
    assert charts.single_factor


def test_in_charts_of_labels_another_target_of_a_series_confounds(labs: tuple[Lab, Lab]) -> None:
    for lab in labs:
        lab.measure(1.0, 2.0)
        lab.measure(1.0, 2.0, ioengine="psync", target=a_target(lab.target.host, "nvme1"))
    made = compare(CompareQuery(x="iodepth", series=("ioengine",), panel="label"))
    assert any(one.kind is DifferenceKind.CONFOUNDED and one.name == "target" for one in made.differs)


def test_results_without_a_label_are_a_level_and_can_be_chosen(labs: tuple[Lab, Lab]) -> None:
    measure(*labs)
    label_run(labs[0], "")
    assert [series.name for series in compare(LABELS).panels[0].series] == ["broadcom", "no label"]
    chosen = CompareQuery(x="iodepth", series=("label",), results=read_filter([("label", "no label")]))
    assert [series.key for series in compare(chosen).panels[0].series] == ["no label"]
    both = CompareQuery(
        x="iodepth", series=("label",), results=read_filter([("label", "no label"), ("label", "broadcom")])
    )
    assert len(compare(both).panels[0].series) == 2
    none = CompareQuery(x="iodepth", results=read_filter([("label", "x' or 1=1 --")]))
    assert compare(none).results == 0
