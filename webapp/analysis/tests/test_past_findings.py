"""A run against the previous run of its plan, and against published tables of its drive."""

from collections.abc import Iterable
from datetime import timedelta
from math import log
from urllib.parse import parse_qs

import pytest
from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.dimensions import label_of_fact
from webapp.analysis.evidence import RunFinding
from webapp.analysis.past_findings import next_runs, previous_runs
from webapp.analysis.run_answer import run_answer
from webapp.analysis.run_findings import findings_of, make_due, newest
from webapp.results.models import Import, Result
from webapp.results.validity import mark_run, mark_trial, trust_run
from webapp.runs.models import Run, RunState, Trial
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS, Lab
from webapp.trends.services import set_baseline, set_import_baseline
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db
K = FindingKind
OF_THE_PAST = (K.CHANGED, K.UNCHANGED, K.REFERENCE)
LEVELS = (1000.0, 2000.0, 4000.0)
SLOWER = (800.0, 1600.0, 3200.0)
TABLE = """pattern,block_size,iodepth,numjobs,iops
randread,4k,1,1,2000
randread,4k,2,1,4000
randread,4k,4,1,8000
"""


@pytest.fixture
def nights() -> Nights:
    return Nights(a_version(), a_target(a_host("h"), "loop0"))


def past(run: Run) -> list[RunFinding]:
    return [each for each in run_answer(run).findings if each.kind in OF_THE_PAST]


def kinds(findings: Iterable[RunFinding]) -> list[FindingKind]:
    return [each.kind for each in findings]


def a_published_table(text: str = TABLE, drive: str = "PM9A3", slug: str | None = "old-drive") -> Import:
    made = an_import(title="Old drive", drive=drive, text=text)
    if slug:
        Import.objects.filter(pk=made.pk).update(slug=slug)
        Result.objects.filter(origin__imported=made).update(reference=True)
    return made


# ---- the previous run


def test_a_slower_run_has_changed(nights: Nights) -> None:
    nights.run(*LEVELS)
    (changed,) = past(nights.run(*SLOWER))
    assert changed.kind is K.CHANGED
    assert changed.size == pytest.approx(-log(0.8), abs=0.03)
    asked = parse_qs(changed.query)
    assert (asked["run"], asked["series"], asked["baseline"]) == (["2", "1"], ["run"], ["1"])
    assert changed.picture is not None
    assert changed.picture.ratios
    assert [line.values[0] for line in changed.picture.lines] == [pytest.approx(0.8, abs=0.03)]


def test_what_else_differs_between_the_runs_is_named(nights: Nights) -> None:
    nights.run(*LEVELS, facts={**FACTS, "kernel.release": "6.1.0"})
    (changed,) = past(nights.run(*SLOWER, facts={**FACTS, "kernel.release": "6.12.0"}))
    assert label_of_fact("kernel.release").lower() in changed.caution


def test_a_change_comes_before_what_a_load_reaches(nights: Nights) -> None:
    nights.run(*LEVELS)
    assert run_answer(nights.run(*SLOWER)).findings[0].kind is K.CHANGED


def test_an_equal_run_is_unchanged_and_no_news(nights: Nights) -> None:
    nights.run(*LEVELS)
    run = nights.run(*LEVELS)
    assert kinds(past(run)) == [K.UNCHANGED]
    make_due(60)
    ended = run.ended_at or timezone.now()
    assert K.UNCHANGED not in kinds(newest(ended - timedelta(days=9), 10))


def test_a_certain_difference_within_the_margin_is_not_stated(nights: Nights) -> None:
    nights.run(*LEVELS, spread=0.0005)
    assert past(nights.run(*(0.97 * level for level in LEVELS), spread=0.0005)) == []


def test_noise_is_not_stated(nights: Nights) -> None:
    nights.run(*LEVELS, spread=0.2)
    assert past(nights.run(*LEVELS, spread=0.2)) == []


def test_only_common_points_are_compared(nights: Nights) -> None:
    nights.run(*LEVELS)
    (changed,) = past(nights.run(*SLOWER, 9.0))
    assert changed.size == pytest.approx(-log(0.8), abs=0.03)


def test_the_first_run_has_no_past(nights: Nights) -> None:
    assert past(nights.run(*LEVELS)) == []


def test_a_run_of_another_target_is_not_the_previous_one(nights: Nights) -> None:
    nights.run(*LEVELS)
    other = Nights(nights.version, a_target(a_host("other"), "loop0"), count=1)
    assert past(other.run(*SLOWER)) == []


def test_a_target_that_only_one_run_measured_is_left_out(nights: Nights) -> None:
    first = nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    further = a_target(nights.target.host, "loop1")
    first.targets.add(further)
    (changed,) = past(run)
    assert parse_qs(changed.query)["target"] == ["h/loop0"]


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
def test_the_previous_run_was_completed(nights: Nights, state: RunState) -> None:
    first = nights.run(*LEVELS)
    failed = nights.run(*LEVELS)
    Run.objects.filter(pk=failed.pk).update(state=state)
    run = nights.run(*SLOWER)
    assert previous_runs([run]) == {run.pk: first}


def test_a_run_that_overlaps_is_not_the_previous_one(nights: Nights) -> None:
    first = nights.run(*LEVELS)
    overlapping = nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    run.refresh_from_db()
    assert run.started_at
    Run.objects.filter(pk=overlapping.pk).update(ended_at=run.started_at + timedelta(minutes=1))
    assert previous_runs([run]) == {run.pk: first}


def test_an_open_run_is_not_compared(nights: Nights) -> None:
    nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    Run.objects.filter(pk=run.pk).update(ended_at=None, state=RunState.RUNNING)
    run.refresh_from_db()
    assert past(run) == []


def test_a_verdict_by_the_previous_run_is_not_stated_again(nights: Nights) -> None:
    first = nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    set_baseline(run=first, target=nights.target, tolerances={"iops": 5.0}, by=a_user("ann"))
    assert past(run) == []


def test_a_verdict_by_an_older_run_is_another_question(nights: Nights) -> None:
    oldest = nights.run(*LEVELS)
    nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    set_baseline(run=oldest, target=nights.target, tolerances={"iops": 5.0}, by=a_user("ann"))
    assert kinds(past(run)) == [K.CHANGED]


def test_marks_of_the_previous_run_count(nights: Nights) -> None:
    """Also in what is stored of the run after it."""
    first = nights.run(*LEVELS)
    run = nights.run(*SLOWER)
    make_due(60)
    assert K.CHANGED in kinds(findings_of([run])[run.number])
    mark_run(run=first, reason="wrong cable", by=a_user("ann"))
    assert past(run) == []
    assert make_due(60) == 2
    assert K.CHANGED not in kinds(findings_of([run])[run.number])
    assert make_due(60) == 0


def test_an_invalid_run_hides_no_fall(nights: Nights) -> None:
    """The run before it counts, and the stored answer follows both marks."""
    nights.run(*LEVELS)
    invalid = nights.run(*SLOWER)
    run = nights.run(*SLOWER)
    make_due(60)
    assert kinds(past(run)) == [K.UNCHANGED]
    mark_run(run=invalid, reason="wrong cable", by=a_user("ann"))
    (changed,) = past(run)
    assert (changed.kind, parse_qs(changed.query)["baseline"]) == (K.CHANGED, ["1"])
    make_due(60)
    assert K.CHANGED in kinds(findings_of([run])[run.number])
    trust_run(run=invalid, by=None)
    assert kinds(past(run)) == [K.UNCHANGED]
    make_due(60)
    assert K.CHANGED not in kinds(findings_of([run])[run.number])


def test_the_next_runs_are_those_right_after(nights: Nights) -> None:
    first, second, _ = (nights.run(*LEVELS) for _ in range(3))
    for run in (first, second):
        run.refresh_from_db()
    assert [run.number for run in next_runs(first)] == [2]


def test_the_next_experiment_measures_the_same_points_again(nights: Nights) -> None:
    nights.run(*LEVELS)
    (changed,) = past(nights.run(*SLOWER))
    assert changed.next is not None
    assert changed.next.plan["repeats"] == 5
    assert changed.next.targets == ("h/loop0",)


def test_previous_runs_take_two_queries(nights: Nights, django_assert_num_queries: object) -> None:
    runs = [nights.run(*LEVELS) for _ in range(4)]
    for run in runs:
        run.refresh_from_db()
    with django_assert_num_queries(2):  # type: ignore[operator]
        previous = previous_runs(runs)
    assert [previous[run.pk].number for run in runs[1:]] == [1, 2, 3]


# ---- published tables


@pytest.fixture
def lab() -> Lab:
    lab = Lab(a_drive(a_host("a"), "nvme0", model="PM9A3"))
    for depth in (1, 2, 4):
        lab.measure(*(1000.0 * depth * factor for factor in (0.99, 1.0, 1.01)), iodepth=depth)
    return lab


def test_a_published_table_of_the_same_model_is_compared(lab: Lab) -> None:
    published = a_published_table()
    (reference,) = past(lab.run)
    assert reference.kind is K.REFERENCE
    assert reference.size == pytest.approx(log(2), abs=0.02)
    asked = parse_qs(reference.query)
    assert (asked["import"], asked["model"]) == ([str(published.number)], ["PM9A3"])
    assert "differ" not in reference.sentence  # tool, host and time always do
    assert reference.picture is not None
    assert [len(line.values) for line in reference.picture.lines] == [3, 3]


def test_ratios_to_single_values_are_stated_as_measured(lab: Lab) -> None:
    a_published_table(TABLE.replace("2000", "1100").replace("4000", "2200").replace("8000", "5000"))
    (reference,) = past(lab.run)
    assert (reference.kind, reference.single) == (K.REFERENCE, True)
    assert reference.size == pytest.approx(log(5 / 4), abs=0.02)


@pytest.mark.parametrize(
    ("drive", "slug", "text"),
    [
        ("PM9A4", "old-drive", TABLE),  # another model
        ("PM9A3", None, TABLE),  # somebody's import
        ("PM9A3", "old-drive", TABLE.replace("4k", "64k")),  # other workloads
        ("PM9A3", "old-drive", TABLE.replace("iops", "iops,layout").replace("00\n", "00,RAID 0 × 2\n")),
    ],
)
def test_other_tables_are_not_compared(lab: Lab, drive: str, slug: str | None, text: str) -> None:
    a_published_table(text, drive, slug)
    assert past(lab.run) == []


def test_a_model_at_two_targets_is_not_compared(lab: Lab) -> None:
    a_published_table()
    lab.run.targets.add(a_drive(lab.target.host, "nvme1", model="PM9A3"))
    assert past(lab.run) == []


def test_a_verdict_by_the_published_table_is_not_stated_again(lab: Lab) -> None:
    published = a_published_table()
    set_import_baseline(
        plan=lab.run.version.plan, target=lab.target, imported=published, levels={}, ignored=["unstated"],
        single_values=True, tolerances={"iops": 5.0}, by=a_user("ann"),
    )  # fmt: skip
    assert past(lab.run) == []


def test_marked_trials_are_not_compared_with_a_table(lab: Lab) -> None:
    a_published_table()
    for trial in Trial.objects.filter(run=lab.run):
        mark_trial(trial=trial, reason="wrong cable", by=a_user(f"ann{trial.index}"))
    assert past(lab.run) == []
