"""A point that would be a mean over levels that nobody asked for has no value; the question says what to choose."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from webapp.analysis.answer import Comparison
from webapp.analysis.comparing import compare, select
from webapp.analysis.question import CompareQuery
from webapp.analysis.tests.measuring import ENGINES, sentence
from webapp.analysis.tests.orders import alternate
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def mixed(made: Comparison) -> Sequence[tuple[str, Sequence[str]]]:
    return [(one.name, [level.key for level in one.levels]) for one in made.mixtures]


def values(made: Comparison) -> int:
    return sum(len(series.cells) for panel in made.panels for series in panel.series)


def test_several_targets_have_no_mean_and_are_compared_between_equals(lab: Lab) -> None:
    """Both engines are equal, but all trials of one failed at the slow target."""
    slow = a_target(lab.target.host, "slow")
    for engine in ("io_uring", "psync"):
        lab.measure(999.0, 1000.0, 1001.0, ioengine=engine)
    lab.measure(99.0, 100.0, 101.0, target=slow)
    made = compare(ENGINES)
    assert mixed(made) == [("target", ["a/scratch", "a/slow"])]
    assert [series.name for series in made.panels[0].series] == ["psync"]
    assert "differ by less than 5 % in IOPS" in sentence(compare(replace(ENGINES, x="matched")))


def test_runs_on_several_targets_are_no_repeats_of_one(lab: Lab) -> None:
    """A run on one more drive is no repeat: the mean would depend on which drives were measured more often."""
    for number, at in enumerate((lab.target, a_target(lab.target.host, "other")), 2):
        Lab(at, number=number).measure(100.0, 101.0, 102.0)
    assert values(compare(ENGINES)) == 0
    Lab(lab.target, number=4).measure(100.0, 101.0, 102.0)
    assert values(compare(replace(ENGINES, x="target"))) == 2  # two runs on one target are repeats


def test_levels_that_differ_only_where_they_cannot_act_are_no_mixture(lab: Lab) -> None:
    """`fdatasync` does nothing for reads."""
    lab.measure(10.0, 11.0)
    lab.measure(10.0, 11.0, fdatasync=1)
    assert mixed(compare(ENGINES)) == []


def test_labels_may_stand_for_several_targets(lab: Lab) -> None:
    other = Lab(a_target(a_host("b"), "scratch"), number=2)
    for one in (lab, other):
        one.run.label = "both"
        one.run.save()
        one.measure(10.0, 11.0)
    assert mixed(compare(CompareQuery("iodepth", ("label",)))) == []
    assert mixed(compare(CompareQuery("iodepth"))) == [("target", ["a/scratch", "b/scratch"])]


def test_a_baseline_whose_points_have_no_value_is_replaced(lab: Lab) -> None:
    for jobs in (1, 4):
        lab.measure(10.0, 11.0, numjobs=jobs)
    for engine in ("psync", "libaio"):
        lab.measure(10.0, 11.0, ioengine=engine)
    made = compare(ENGINES)
    assert (made.baseline, [one.name for one in made.mixtures]) == ("libaio", ["numjobs"])


def test_latencies_and_time_lines_have_the_same_points(lab: Lab) -> None:
    for jobs in (1, 4):
        lab.measure(10.0, 11.0, numjobs=jobs)
    lab.measure(10.0, 11.0, iodepth=8)
    alternate(lab.run)
    assert {row.point["iodepth"] for row in select(ENGINES).rows} == {8}
