"""How long a run has run and how long it will still take: outages, pauses, trials of different lengths."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.runs.dispatch.host_queues import queues
from webapp.runs.models import Attempt, Run, RunState, Transition, TrialState
from webapp.runs.selectors import progress
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.runs import a_run

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def a_run_with(took_s: Sequence[float], *, trials: int, runtimes: Sequence[int | None] = (3,)) -> Run:
    """Its first trials are done and took so long; their own times are `runtimes` in turn, None: an amount ends it."""
    run = a_run(a_target(), trials=trials, state=RunState.RUNNING, started_at=NOW)
    for place, trial in enumerate(run.trials.select_related("host").order_by("index")):
        trial.workload |= {"runtime_s": runtimes[place % len(runtimes)]}
        if place < len(took_s):
            trial.state = TrialState.DONE
            made = Attempt.objects.create(
                kind="trial", run=run, trial=trial, host=trial.host, state="done", lease_until=NOW, ended_at=NOW
            )
            Attempt.objects.filter(pk=made.pk).update(created_at=NOW - timedelta(seconds=took_s[place]))
        trial.save()
    return run


@pytest.mark.parametrize(
    ("took_s", "runtimes", "left_s"),
    [
        ([4, 4, 5], (3,), 7 * 4),
        ([4, 2520, 5], (3,), 7 * 5),  # told after an outage of 42 min
        ([-3600, -86400, 5], (3,), 7 * 5),  # the server's clock was set back in two of them
        ([4, 61, 4, 62], (3, 60), 3 * 3 + 3 * 60 + 6 * 1),  # short and long ones in turn
        ([9, 11], (None,), 8 * 10),
        ([4, 11], (3, None), 4 * 4 + 4 * 11),
        ([4], (3, None), None),  # none of those that an amount ends is done yet
        ([], (3,), None),
    ],
)
def test_what_is_left_takes_as_long_as_what_is_done(
    took_s: list[float], runtimes: tuple[int | None, ...], left_s: float | None
) -> None:
    assert progress(a_run_with(took_s, trials=10, runtimes=runtimes)).seconds_left == left_s


def test_the_queue_says_the_same_as_the_run() -> None:
    run = a_run_with([4, 2520, 5], trials=10)
    ((entry,),) = [queue.entries for queue in queues()]
    assert (entry.load.left, entry.load.seconds) == (7, progress(run).seconds_left)


def test_the_slowest_host_counts() -> None:
    run = a_run(a_target(), a_target(a_host()), trials=2, state=RunState.RUNNING, started_at=NOW)
    first = run.trials.select_related("host").order_by("index")[0]
    Attempt.objects.create(
        kind="trial", run=run, trial=first, host=first.host, state="done", lease_until=NOW,
        ended_at=NOW + timedelta(seconds=4),
    )  # fmt: skip
    Attempt.objects.update(created_at=NOW)
    first.state = TrialState.DONE
    first.save()
    assert progress(run).seconds_left == 8


def test_the_rest_is_unknown_while_the_last_trial_takes_longer_than_those_before_it() -> None:
    run = a_run_with([4], trials=2)
    last = run.trials.select_related("host").order_by("index")[1]
    attempt = Attempt.objects.create(
        kind="trial", run=run, trial=last, host=last.host, state="running", lease_until=NOW
    )
    last.state = TrialState.RUNNING
    last.save()
    Attempt.objects.filter(pk=attempt.pk).update(created_at=timezone.now() - timedelta(seconds=1))
    left_s = progress(run).seconds_left
    assert left_s is not None
    assert 2 < left_s < 4
    Attempt.objects.filter(pk=attempt.pk).update(created_at=timezone.now() - timedelta(seconds=60))
    assert progress(run).seconds_left is None


def test_pauses_are_no_time_that_it_ran() -> None:
    run = a_run(a_target(), trials=1)
    assert progress(run).paused_s == 0
    transitions = (
        ("queued", "running", 100),
        ("running", "paused", 90),
        ("paused", "running", 60),
        ("running", "paused", 10),
    )
    for before, after, ago in transitions:
        move = Transition.objects.create(run=run, before=before, after=after)
        Transition.objects.filter(pk=move.pk).update(at=NOW - timedelta(seconds=ago))
    Run.objects.update(state=RunState.PAUSED, started_at=NOW - timedelta(seconds=100), ended_at=NOW)
    run.refresh_from_db()
    found = progress(run)
    assert (found.elapsed_s, found.paused_s) == (100, 40)
