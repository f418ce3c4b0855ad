"""Which runs are old, what protects them, and what their deletion leaves."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from webapp.analysis.models import SavedComparison
from webapp.core.models import AuditEntry
from webapp.plans.models import PlanVersion
from webapp.results.models import Result, Sample, StreamRun
from webapp.results.retention import ensure_partition
from webapp.runs.models import Attempt, Run, Transition
from webapp.storage.run_retention import Ages, delete_old_runs, delete_old_transitions, proposals
from webapp.storage.tasks import tidy
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab, add_samples
from webapp.tests.factories.schedules import a_schedule
from webapp.trends.models import Baseline

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker")]

NOW = timezone.now()


def an_old_run(number: int, days: int = 100, version: PlanVersion | None = None) -> Run:
    """One trial with a result, ended so many days ago."""
    lab = Lab(a_target(), version=version, number=number)
    lab.measure(100.0)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=NOW - timedelta(days=days))
    lab.run.refresh_from_db()
    return lab.run


def numbers(ages: Ages = Ages(90, {}), now: datetime = NOW) -> tuple[list[int], list[int]]:  # noqa: B008 - frozen
    """Of the runs that would be deleted, and of the old ones that are kept."""
    found = proposals(ages, now=now)
    deleted = sorted(number for each in found for number in each.runs)
    return deleted, sorted(number for each in found for number in each.kept)


def test_it_proposes_runs_that_ended_before_the_age() -> None:
    an_old_run(1, days=91)
    an_old_run(2, days=89)
    assert numbers() == ([1], [])
    assert numbers(Ages(0, {})) == ([], [])


def test_a_plan_may_have_an_age_of_its_own() -> None:
    nightly, acceptance = a_version(slug="nightly"), a_version(slug="acceptance")
    an_old_run(1, days=40, version=nightly)
    an_old_run(2, days=400, version=acceptance)
    an_old_run(3, days=100)
    assert numbers(Ages(90, {"nightly": 30, "acceptance": 0})) == ([1, 3], [])
    assert numbers(Ages(0, {"nightly": 30})) == ([1], [])


def test_it_keeps_open_runs() -> None:
    run = an_old_run(1)
    Run.objects.filter(pk=run.pk).update(state="closing")
    assert numbers() == ([], [])


def test_it_keeps_a_baseline() -> None:
    run = an_old_run(1)
    Baseline.objects.create(plan=run.version.plan, target=run.targets.get(), run=run, tolerances={})
    assert numbers() == ([], [1])


def test_it_keeps_a_run_with_the_tag() -> None:
    run = an_old_run(1)
    Run.objects.filter(pk=run.pk).update(tags=["keep", "other"])
    assert numbers() == ([], [1])


def test_it_keeps_a_run_that_a_schedule_follows() -> None:
    run = an_old_run(1)
    schedule = a_schedule(a_user("ann"))
    type(schedule).objects.filter(pk=schedule.pk).update(after_run=run, trigger="after_run")
    assert numbers() == ([], [1])


@pytest.mark.parametrize(
    ("query", "frozen", "kept"),
    [
        ("x=iodepth&run=1", False, [1]),
        ("x=iodepth&run=1", True, [1]),
        ("x=iodepth&factor.block_size=4k", False, [1, 2]),
        ("x=iodepth&factor.block_size=4k", True, []),
        ("product=run:1&product=import:7", False, [1]),
        ("x=no_such_dimension&run=1", False, [1]),
    ],
)
def test_it_keeps_runs_that_a_saved_comparison_shows(query: str, frozen: bool, kept: list[int]) -> None:
    for number in (1, 2):
        an_old_run(number)
    SavedComparison.objects.create(
        title="Kept", query=query, frozen=b"" if frozen else None, frozen_at=NOW if frozen else None
    )
    assert numbers()[1] == kept


def test_it_keeps_runs_of_a_deleted_comparison_which_can_be_restored() -> None:
    an_old_run(1)
    SavedComparison.objects.create(title="Deleted", query="x=iodepth&run=1", deleted_at=NOW)
    assert numbers() == ([], [1])


def test_an_invalid_result_protects_its_run_as_well() -> None:
    an_old_run(1)
    Result.objects.update(invalid=True)
    SavedComparison.objects.create(title="Kept", query="x=iodepth&run=1")
    assert numbers() == ([], [1])


def test_the_space_is_the_share_of_the_rows_and_samples() -> None:
    version = a_version(slug="nightly")
    for number in (1, 2):
        run = an_old_run(number, version=version, days=100 if number == 1 else 10)
        attempt = Attempt.objects.get(run=run)
        ensure_partition(timezone.now().date())
        add_samples(attempt, 400)
        StreamRun.objects.filter(attempt=attempt).update(samples_sent=400)
    (half,) = proposals(Ages(90, {}), now=NOW)
    (both,) = proposals(Ages(5, {}), now=NOW)
    assert half.bytes > 0
    assert both.bytes == pytest.approx(2 * half.bytes, rel=0.01)


def test_it_deletes_what_it_proposed_with_an_audit_entry_each(settings: object) -> None:
    settings.RUN_DAYS = 90  # type: ignore[attr-defined]
    an_old_run(1)
    kept = an_old_run(2)
    an_old_run(3, days=10)
    Run.objects.filter(pk=kept.pk).update(tags=["keep"])
    tidy()
    assert sorted(Run.objects.values_list("number", flat=True)) == [2, 3]
    assert not Sample.objects.exists()
    assert AuditEntry.objects.get(action="run.delete", actor=None).label == "run 1"


def test_it_deletes_nothing_by_default() -> None:
    an_old_run(1, days=10_000)
    tidy()
    assert Run.objects.exists()


def test_it_asks_again_before_each_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that becomes a baseline while others are deleted is kept."""
    version = a_version(slug="nightly")
    an_old_run(1, days=120, version=version)
    second = an_old_run(2, days=110, version=version)

    def delete_and_refer(*, run: Run, by: object) -> None:
        Run.objects.filter(pk=second.pk).update(tags=["keep"])

    monkeypatch.setattr("webapp.storage.run_retention.delete_run", delete_and_refer)
    assert delete_old_runs(Ages(90, {}), now=NOW) == [1]


def test_the_command_deletes_only_with_yes() -> None:
    an_old_run(1)
    call_command("delete_old_runs", days=90, stdout=StringIO())
    assert Run.objects.exists()
    call_command("delete_old_runs", days=90, plan="plan-2", yes=True, stdout=StringIO())
    assert Run.objects.exists()
    call_command("delete_old_runs", days=90, plan="plan-1", yes=True, stdout=StringIO())
    assert not Run.objects.exists()


def test_the_command_says_that_nothing_is_old() -> None:
    said = StringIO()
    call_command("delete_old_runs", days=90, stdout=said)
    assert said.getvalue() == "No runs ended more than 90 days ago.\n"


def test_old_transitions_of_trials_are_deleted_and_those_of_runs_stay() -> None:
    old, young = an_old_run(1, days=400), an_old_run(2, days=300)
    for run in (old, young):
        for trial in (None, run.trials.first()):
            Transition.objects.create(run=run, trial=trial, before="running", after="done")
    kept = Transition.objects.exclude(run=old, trial__isnull=False).count()
    assert delete_old_transitions(0, now=NOW) == 0
    assert delete_old_transitions(365, now=NOW) > 0
    assert Transition.objects.count() == kept
    assert not old.transitions.filter(trial__isnull=False).exists()
    assert young.transitions.filter(trial__isnull=False).exists()
