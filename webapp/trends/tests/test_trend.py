"""A value for each run, steps with what changed, and what is left out."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.core import answers
from webapp.hosts.services import rename_host
from webapp.results.management.commands.run_plan import point_table
from webapp.results.metrics import METRICS
from webapp.results.models import Result, StreamRun
from webapp.results.validity import mark_run, trust_run
from webapp.runs.models import Run, RunState, Trial
from webapp.tests.factories.results import FACTS, a_configuration
from webapp.trends.tests.measuring import Nights
from webapp.trends.trend import INCOMPLETE, NO_VALUES, OTHER_POINTS

NEW_KERNEL = FACTS | {"kernel.release": "6.12.0"}


def test_a_step_names_its_run_its_size_and_the_facts_that_changed(nights: Nights) -> None:
    for _ in range(10):
        nights.run(1000, 4000)
    for _ in range(5):
        nights.run(800, 3200, facts=NEW_KERNEL)
    (step,) = nights.trend().steps
    assert (step.before.run.number, step.after.run.number) == (10, 11)
    assert step.ratio == pytest.approx(0.8, rel=0.02)
    assert [(change.name, change.before, change.after) for change in step.changed] == [
        ("kernel.release", "6.1.0", "6.12.0")
    ]


def test_another_engine_or_plan_version_is_a_change(nights: Nights) -> None:
    nights.run(1000)
    lab = nights.lab()
    lab.measure(1000, 1000, iodepth=1, fio="fio-3.40")
    Run.objects.filter(pk=lab.run.pk).update(version=nights.version.plan.versions.create(number=2, document={}))
    changed = {change.name: (change.before, change.after) for change in nights.trend().runs[-1].changed}
    assert changed == {"engine version": ("fio-3.33", "fio-3.40"), "plan version": ("1", "2")}


def test_the_value_of_a_run_is_the_geometric_mean_over_its_cells(nights: Nights) -> None:
    nights.run(1000, 4000, spread=0)
    (value,) = nights.trend().runs
    assert value.value == pytest.approx(2000)
    assert value.repeats == 3
    assert value.low == pytest.approx(value.high) == pytest.approx(2000)


def test_several_values_of_a_repeat_count_with_their_mean(nights: Nights) -> None:
    """As in comparisons and verdicts."""
    lab = nights.lab()
    lab.measure(100, 100, 100)
    lab.measure(300, 300, 300)
    (value,) = nights.trend().runs
    assert value.value == pytest.approx(200)
    assert value.repeats == 3


def test_a_run_with_one_repeat_has_no_interval(nights: Nights) -> None:
    nights.lab().measure(1000, iodepth=1)
    (value,) = nights.trend().runs
    assert (value.low, value.high, value.repeats) == (None, None, 1)


def test_only_cells_of_all_runs_are_in_the_mean(nights: Nights) -> None:
    nights.run(1000, 4000, spread=0)
    nights.run(1000, 4000, 16000, spread=0)
    found = nights.trend()
    assert [one.value for one in found.runs] == [pytest.approx(2000), pytest.approx(2000)]
    assert (len(found.cells), found.other_cells) == (2, 1)


def test_invalid_results_are_left_out_and_counted(nights: Nights) -> None:
    nights.run(1000, 4000)
    marked = nights.run(1000, 4000)
    Result.objects.filter(run=marked).update(invalid=True)
    partly = nights.run(1000, 4000)
    Result.objects.filter(run=partly, point__iodepth=2).update(invalid=True)
    found = nights.trend()
    assert [one.run.number for one in found.runs] == [1]
    assert [(one.run.number, one.why) for one in found.left_out] == [(2, NO_VALUES), (3, INCOMPLETE)]
    assert found.invalid_results == 6 + 3
    (first,) = {result.point_key for result in marked.results.filter(point__iodepth=1)}
    assert nights.trend(without=first).invalid_results == 3 + 3


def test_one_invalid_repeat_leaves_the_others(nights: Nights) -> None:
    run = nights.run(1000)
    Result.objects.filter(run=run, trial__repeat=2).update(invalid=True)
    found = nights.trend()
    assert [one.repeats for one in found.runs] == [2]
    assert found.invalid_results == 1


def test_runs_with_few_cells_of_the_newest_one_are_left_out(nights: Nights) -> None:
    nights.run(1000)
    nights.run(1000, 2000, 4000)
    assert [(one.run.number, one.why) for one in nights.trend().left_out] == [(1, OTHER_POINTS)]


def test_open_runs_are_not_in_the_trend(nights: Nights) -> None:
    Run.objects.filter(pk=nights.run(1000).pk).update(state=RunState.RUNNING)
    assert nights.trend().runs == []
    assert nights.trend().steps == []


def test_a_metric_without_values_has_no_runs(nights: Nights) -> None:
    nights.run(1000)
    history = nights.history
    assert not nights.trend(direction="write").runs
    assert history.runs[0].values.cells
    assert METRICS["iops"] is nights.trend().metric


def test_the_change_of_a_cell_is_that_of_its_own_trend(nights: Nights) -> None:
    """The geometric means of 100 and 400, and of 190 and 210, are 200 and 199.7."""
    for values in ((100.0, 400.0), (190.0, 210.0)):
        nights.lab().measure(*values, iodepth=1)
    (cell,) = nights.trend().cells
    assert [cell.first, cell.last] == [pytest.approx(200.0), pytest.approx(199.7, abs=0.1)]
    assert [one.value for one in nights.trend().runs] == [pytest.approx(cell.first), pytest.approx(cell.last)]


def test_a_point_in_two_parts_has_two_cells(nights: Nights) -> None:
    """As everywhere else: no page shows a mean over both."""
    lab = nights.lab()
    lab.measure(101.0, 101.0, 101.0, iodepth=1)
    second = lab.measure(404.0, 404.0, 404.0, iodepth=1)
    Trial.objects.filter(results__in=second).update(part="b")
    first, other = nights.trend().cells
    assert [first.first, other.first] == [pytest.approx(101.0), pytest.approx(404.0)]
    assert other.part == "b"
    assert first.part not in ("", "b")
    assert nights.trend().runs[0].value == pytest.approx((101.0 * 404.0) ** 0.5)
    headings, *rows = point_table(lab.run)
    assert headings[1] == "part"
    assert [(row[1], row[-4]) for row in rows] == [(first.part, "101 ± 0"), ("b", "404 ± 0")]


def test_a_value_of_0_is_not_in_the_mean_and_counted(nights: Nights) -> None:
    nights.run(1000, 4000, spread=0)
    run = nights.run(1000, 4000, spread=0)
    run.results.filter(point__iodepth=1, repeat=1).update(iops=0.0)
    values = nights.trend().runs
    assert [one.value for one in values] == pytest.approx([2000, 2000])
    assert [(one.repeats, one.zeros) for one in values] == [(3, 0), (2, 1)]


def test_a_stored_history_follows_each_change_of_a_run(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is read anew; and only the changed run is read."""
    monkeypatch.setattr(answers, "_silent_until_s", 0.0)
    runs = [nights.run(1000, 4000) for _ in range(3)]
    first, last = runs[0], runs[-1]
    other = a_configuration(NEW_KERNEL)
    steps: list[Callable[[], object]] = [
        lambda: None,
        lambda: nights.run(900, 3600),
        lambda: mark_run(run=last, reason="noise", by=None),
        lambda: trust_run(run=last, by=None),
        lambda: Result.objects.filter(run=first).order_by("pk")[:1].get().delete(),
        lambda: StreamRun.objects.filter(attempt__run=first).update(configuration=other),
        lambda: Run.objects.filter(pk=first.pk).update(state=RunState.CANCELLED),
        lambda: rename_host(host=nights.target.host, slug="other", by=None),
        lambda: Result.objects.filter(run=first).update(iops=0),
    ]
    for change in steps:
        change()
        stored = nights.trend()
        with monkeypatch.context() as patch:
            patch.setattr(answers, "_silent_until_s", float("inf"))  # without Redis
            assert stored == nights.trend()
    with CaptureQueriesContext(connection) as queries:
        nights.trend()
    assert not any("results_result" in query["sql"] for query in queries)
