"""Old samples are thinned, runs are deleted whole, and nothing else is touched."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from webapp.core import health
from webapp.core.models import AuditEntry, Heartbeat
from webapp.plans.models import PlanVersion
from webapp.results import retention as results_partitions
from webapp.results.models import Configuration, Result, Sample, StreamRun
from webapp.results.retention import (
    Partition,
    _known,
    delete_orphans,
    delete_run,
    ensure_partition,
    partitions,
    thin_samples,
)
from webapp.results.tasks import tidy
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run, Trial
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, sample, say
from webapp.tests.factories.runs import a_run
from webapp.tests.refusals import refuses
from worker.contract.items import Item

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def run() -> Run:
    """One trial of 25 s, done."""
    run = a_run(a_target(a_host()), trials=1)
    attempt = dispatch_host(run.trials.get().host_id)
    assert attempt
    items: tuple[Item, ...] = (ACCEPTED, STARTED, *(sample(second) for second in range(25)), RESULT, DONE)
    say(attempt.host, attempt, (1, items))
    close = Attempt.objects.latest("created_at")
    say(close.host, close, (1, (ACCEPTED, DONE)))
    return Run.objects.get()


@pytest.fixture(autouse=True)
def _leave_no_partitions() -> Iterator[None]:
    """Tests share the tables: only the partitions that the migration made stay."""
    before = {each.table for each in partitions()}
    yield
    with connection.cursor() as cursor:
        for each in partitions():
            if each.table not in before:
                cursor.execute(f"DROP TABLE {each.table}")
                _known.discard(each.month)


def ended_days_ago(days: int) -> None:
    """With its attempts, and the partition that their samples are in."""
    at = timezone.now() - timedelta(days=days)
    Run.objects.update(ended_at=at)
    Attempt.objects.update(created_at=at)
    ensure_partition(at.date())
    Sample.objects.update(day=at.date())


def test_it_keeps_one_sample_in_ten_of_old_samples_and_all_results(run: Run) -> None:
    ended_days_ago(91)
    before = Result.objects.values_list("latency", flat=True).get()
    tidy()
    assert list(Sample.objects.order_by("offset_ms").values_list("offset_ms", flat=True)) == [10_000, 20_000]
    assert Result.objects.values_list("latency", flat=True).get() == before
    assert thin_samples() == 0


def test_a_kept_sample_has_the_extremes_of_its_ten_seconds(run: Run) -> None:
    ended_days_ago(91)
    Sample.objects.filter(offset_ms=3000).update(ios=1)
    Sample.objects.filter(offset_ms=12_000).update(ios=90_000)
    usual = Sample.objects.get(offset_ms=1000).ios
    thin_samples()
    first, second = Sample.objects.order_by("offset_ms")
    assert (first.iops_min, first.iops_mean, first.iops_max) == (1, (9 * usual + 1) / 10, usual)
    assert (second.iops_min, second.iops_mean, second.iops_max) == (usual, (9 * usual + 90_000) / 10, 90_000)


def test_it_waits_a_day_after_the_clock_jumped(run: Run) -> None:
    """A clock that is 200 days ahead for a minute must not delete anything."""
    ended_days_ago(91)
    before = Sample.objects.count()
    Heartbeat.objects.create(name=health.TIDY_RESULTS, at=timezone.now() - timedelta(days=200))
    tidy()
    assert Sample.objects.count() == before
    Heartbeat.objects.filter(name=health.TIDY_RESULTS).update(at=timezone.now() - timedelta(days=1))
    tidy()
    assert Sample.objects.count() < before


def test_the_command_thins_as_beat_does(run: Run) -> None:
    ended_days_ago(91)
    call_command("thin_samples", stdout=StringIO())
    assert Sample.objects.count() == 2


def test_it_drops_the_partition_that_it_thinned(run: Run) -> None:
    ended_days_ago(150)
    assert thin_samples() == 23
    (left,) = [each for each in partitions() if each.month <= timezone.now().date() - timedelta(days=100)]
    assert left.thinned
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [Partition(left.month).table])
        assert cursor.fetchone() == (None,)


def test_it_leaves_a_partition_while_another_run_in_it_is_young(run: Run) -> None:
    ended_days_ago(150)
    young = a_run(a_target(), trials=1)
    attempt = dispatch_host(young.trials.get().host_id)
    assert attempt
    Attempt.objects.update(created_at=timezone.now() - timedelta(days=150))
    assert thin_samples() == 0
    Run.objects.update(state="done", ended_at=timezone.now() - timedelta(days=150))
    assert thin_samples() == 23


def test_it_leaves_samples_where_they_are_while_somebody_reads_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_partitions, "_EXCHANGE_WAIT", "100ms")
    ended_days_ago(150)
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SELECT count(*) FROM results_sample")  # holds its lock until the transaction ends
        assert thin_samples() == 0
    assert Sample.objects.count() == 25
    assert thin_samples() == 23


def test_it_leaves_young_samples_and_those_of_open_runs(run: Run) -> None:
    ended_days_ago(89)
    assert thin_samples() == 0
    ended_days_ago(91)
    Run.objects.update(state="running")
    assert thin_samples() == 0
    assert Sample.objects.count() == 25


def test_it_thins_nothing_where_samples_are_kept_for_ever(run: Run, settings: object) -> None:
    settings.SAMPLE_DAYS = 0  # type: ignore[attr-defined]
    ended_days_ago(10_000)
    assert thin_samples() == 0


def test_it_deletes_a_run_whole_and_no_other(run: Run) -> None:
    other = a_run(a_target(), trials=1)
    delete_run(run=run, by=a_user("ann"))
    assert list(Run.objects.all()) == [other]
    assert Trial.objects.get().run == other
    for table in (Attempt, StreamRun, Result, Sample):
        assert not table.objects.exists()
    assert PlanVersion.objects.count() == 2
    entry = AuditEntry.objects.get(action="run.delete")
    assert (entry.actor_name, entry.label, entry.detail) == ("ann", "run 1", {"trials": 1, "results": 1})


def test_the_number_of_a_deleted_run_is_given_to_no_other(run: Run) -> None:
    """A link to a comparison with `run=1` would show the results of another run."""
    delete_run(run=run, by=None)
    later = start_run(version=a_version(), targets=[a_target()], by=None)
    assert later.number == run.number + 1


def test_it_refuses_to_delete_a_run_that_is_not_over(run: Run) -> None:
    Run.objects.update(state="closing")
    with refuses("run_open"):
        delete_run(run=run, by=None)
    assert Run.objects.exists()


def test_it_deletes_only_configurations_that_nothing_leads_to(run: Run) -> None:
    for digest in ("used", "observed", "unused"):
        Configuration.objects.create(digest=digest, facts={})
    StreamRun.objects.update(configuration_id="used")
    Attempt.objects.filter(kind="trial").update(configuration_digest="observed")
    assert delete_orphans() == 1
    assert set(Configuration.objects.values_list("digest", flat=True)) == {"used", "observed"}


def test_its_command_asks_before_it_deletes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "no")
    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("delete_run", "1")
    assert Run.objects.exists()
    call_command("delete_run", "1", yes=True, stdout=StringIO())
    assert not Run.objects.exists()
    with pytest.raises(CommandError, match="no run 1"):
        call_command("delete_run", "1", yes=True)
