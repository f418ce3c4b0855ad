"""What a preview learns from earlier runs."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.hosts.models import Target
from webapp.plans.expected_time import Span
from webapp.runs.durations import experience_of
from webapp.runs.models import Attempt, FurtherTarget, Run, RunState, SettingChange
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.runs import a_run
from worker.contract.workload import Confidence, CopyWorkload, FioWorkload, Pattern, PgbenchWorkload

pytestmark = pytest.mark.django_db
MIB = 2**20


@pytest.fixture
def target() -> Target:
    return a_target()


def ended_run(target: Target, turnovers: Sequence[float], *, prefill_s: float = 0.0, amount: int | None = None) -> Run:
    """Trials of 3 s one after the other; `turnovers` besides that, half of it before fio begins."""
    run = a_run(target, trials=len(turnovers))
    at = timezone.now()
    for trial, turnover_s in zip(run.trials.order_by("index"), turnovers, strict=True):
        work = FioWorkload(pattern=Pattern.RANDREAD, size_bytes=64 * MIB, runtime_s=3)
        if amount:
            work = msgspec.structs.replace(work, runtime_s=None, amount_bytes=amount)
        trial.workload = msgspec.to_builtins(work)
        trial.save()
        before_s = turnover_s / 2 + (prefill_s if trial.index == 0 else 0)
        began = at + timedelta(seconds=before_s)
        ended = began + timedelta(seconds=3 + turnover_s / 2)
        made = Attempt.objects.create(
            kind="trial", run=run, trial=trial, host=target.host, state="done", started_at=began, ended_at=ended,
            lease_until=ended,
        )  # fmt: skip
        Attempt.objects.filter(pk=made.pk).update(created_at=at)
        at = ended
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE, ended_at=at)
    return run


def at_once(run: Run, *further: Target) -> None:
    """All its trials used these at the same time."""
    for trial in run.trials.all():
        FurtherTarget.objects.bulk_create(
            FurtherTarget(trial=trial, stream=1 + n, target=t) for n, t in enumerate(further)
        )


def figures(span: Span | None) -> tuple[float, float, float]:
    assert span is not None
    return span.low, span.typical, span.high


def test_a_host_without_ended_runs_teaches_nothing(target: Target) -> None:
    assert experience_of([target]) == {}
    run = ended_run(target, [1, 1, 1, 1])
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert experience_of([target]) == {}
    assert experience_of([a_target(a_host())]) == {}


def test_the_estimate_uses_the_median_turnover_of_each_run(target: Target) -> None:
    ended_run(target, [9, 1, 1, 1])  # the first one may have written files: it does not count
    ended_run(target, [9, 1, 2, 3])
    ended_run(target, [9, 4, 4, 2400, 4])  # an outage
    ended_run(target, [9, 50])  # too few trials to say anything
    found = experience_of([target])[str(target.host_id)]
    assert found.runs == 3
    assert figures(found.turnover_s) == pytest.approx((1, 2, 5)), (
        "the outage counts twice the median: (4 + 4 + 4 + 8) / 4"
    )


def test_the_longest_time_covers_what_a_noisy_run_took(target: Target) -> None:
    run = ended_run(target, [5, 3, 3, 4, 8, 8, 4])
    ended_run(target, [2, 2, 2, 2, 2])
    for trial in run.trials.filter(index__gt=0):  # each order comes 0.5 s after the end of the trial before
        Attempt.objects.filter(trial=trial).update(
            **{
                name: F(name) + timedelta(seconds=0.5) * trial.index
                for name in ("created_at", "started_at", "ended_at")
            }
        )
    found = experience_of([target])[str(target.host_id)]
    assert figures(found.turnover_s) == pytest.approx((2, 3, 5.5))
    attempts = Attempt.objects.filter(run=run).order_by("created_at")
    first, last = attempts[1], attempts[6]
    assert first.ended_at is not None
    assert last.ended_at is not None
    assert 6 * (3 + found.turnover_s.high) >= (last.ended_at - first.created_at).total_seconds()


def test_files_are_written_at_the_rate_of_the_first_trials(target: Target) -> None:
    ended_run(target, [1, 1, 1, 1], prefill_s=2)
    ended_run(target, [1, 1, 1, 1], prefill_s=0.1)  # they were there already
    found = experience_of([target])[str(target.host_id)]
    assert figures(found.prefill_bytes_per_s) == pytest.approx((32 * MIB, 32 * MIB, 32 * MIB))


def test_amounts_are_remembered_by_target_and_workload(target: Target) -> None:
    ended_run(target, [1, 1, 1, 1])
    ended_run(target, [0, 0, 0], amount=300 * MIB)
    found = experience_of([target])[str(target.host_id)]
    ((of_targets, work), rate), *others = found.amounts.items()
    assert others == []
    assert (of_targets, work.moved_bytes) == ((str(target.pk),), None)
    assert rate.typical == pytest.approx(100 * MIB)


def test_the_load_of_a_database_is_no_turnover(target: Target) -> None:
    run, work = ended_run(target, [1, 9, 9, 9]), PgbenchWorkload(scale=2, runtime_s=3)
    run.trials.update(workload=msgspec.to_builtins(work))
    found = experience_of([target])[str(target.host_id)]
    assert figures(found.turnover_s) == pytest.approx((4.5, 4.5, 4.5)), "half of it, before the engine began"
    assert figures(found.loads_s[(str(target.pk),), work.load_bytes]) == pytest.approx((0.5, 4.5, 4.5))


def test_times_of_targets_at_once_count_for_the_whole_group(target: Target) -> None:
    """Each wrote files of its own first, one after the other."""
    second = a_target(target.host)
    at_once(ended_run(target, [1, 1, 1, 1], prefill_s=4), second)
    at_once(ended_run(target, [0, 0, 0], amount=300 * MIB), second)
    found = experience_of([target])[str(target.host_id)]
    assert figures(found.prefill_bytes_per_s) == pytest.approx((32 * MIB, 32 * MIB, 32 * MIB))
    assert [ids for ids, _ in found.amounts] == [(str(target.pk), str(second.pk))]


def test_it_takes_two_queries(target: Target, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(3):
        ended_run(target, [1, 1, 1, 1])
    with django_assert_max_num_queries(2):
        experience_of([target])


def test_it_learns_how_long_layouts_take_to_build_and_keeps_that_out_of_the_rest(target: Target) -> None:
    run = ended_run(target, [21, 1, 1, 41])
    attempts = list(Attempt.objects.filter(run=run).order_by("trial__index"))
    lines = ["raid0 x2 chunk 64k / xfs"] * 2 + ["single"] * 2
    for attempt, line, took_s in zip(attempts, lines, (20.0, None, None, 40.0), strict=True):
        SettingChange.objects.create(
            attempt=attempt, at=timezone.now(), name="layout", asked=line, observed=line, took_s=took_s
        )
    learned = experience_of([target])[str(target.host_id)]
    assert figures(learned.turnover_s) == (1, 1, 1)
    assert {line: figures(span) for line, span in learned.builds_s.items()} == {
        "raid0 x2 chunk 64k / xfs": (20, 20, 20), "single": (40, 40, 40),
    }  # fmt: skip


def test_layouts_of_several_pools_are_built_one_after_the_other(target: Target) -> None:
    run = ended_run(target, [31, 1, 1, 1])
    first = Attempt.objects.filter(run=run).order_by("trial__index")[0]
    for device, took_s in (("sda", 10.0), ("sdb", 20.0)):
        SettingChange.objects.create(
            attempt=first, at=timezone.now(), name="layout", device=device, asked="single", observed="single",
            took_s=took_s,
        )  # fmt: skip
    learned = experience_of([target])[str(target.host_id)]
    assert figures(learned.turnover_s) == (1, 1, 1)
    assert figures(learned.builds_s["single"]) == (15, 15, 15)


def test_the_turnover_of_copies_is_estimated_from_earlier_copies(target: Target) -> None:
    """Its turnover is the time from the order to the engine's start; the rest is the amount's."""
    run = ended_run(target, [2, 2, 2, 2])
    copy = CopyWorkload(size_bytes=64 * MIB)
    run.trials.update(workload=msgspec.to_builtins(copy))
    learned = experience_of([target])[str(target.host_id)]
    assert figures(learned.turnover_s) == pytest.approx((1, 1, 1))
    assert learned.amounts[(str(target.pk),), copy.rated()].typical == pytest.approx(2 * 64 * MIB / 4)


def test_trials_with_a_stop_rule_tell_how_long_they_took(target: Target) -> None:
    run = ended_run(target, [1, 1, 1, 1])
    work = FioWorkload(pattern=Pattern.RANDREAD, runtime_s=60, stop=Confidence(percent=2))
    run.trials.update(workload=msgspec.to_builtins(work))
    known = experience_of([target])[str(target.host_id)]
    assert known.turnover_s.typical == pytest.approx(0.5)  # before fio begins
    assert known.stops_s[(str(target.pk),), work].typical == pytest.approx(3.5)
