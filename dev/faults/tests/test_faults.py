"""Fault injection: the schedule, the queries of the invariants, and a short campaign."""

import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from django.db import connection
from django.utils import timezone

from dev.faults.fault_schedule import fault_schedule
from dev.faults.faults import FAULTS
from dev.faults.invariants import InvariantChecker
from dev.faults.queries import INVARIANTS, REFUSED_WORKERS
from dev.stack.state import REPOSITORY
from webapp.hosts.models import Target
from webapp.results.models import Result, StreamRun
from webapp.runs.models import Attempt, Run, Trial
from webapp.tests.factories.hosts import a_drive
from webapp.tests.factories.results import Lab, add_samples
from webapp.tests.factories.runs import a_run

FIXED_SEED = "7"
CAMPAIGN_LIMIT_S = 400


def test_it_schedules_the_same_faults_for_the_same_seed() -> None:
    assert fault_schedule(5, faults=50, names=list(FAULTS), hosts=3) == fault_schedule(
        5, faults=50, names=list(FAULTS), hosts=3
    )
    assert fault_schedule(5, faults=50, names=list(FAULTS), hosts=3) != fault_schedule(
        6, faults=50, names=list(FAULTS), hosts=3
    )


def test_it_schedules_every_fault_equally_often() -> None:
    rounds = fault_schedule(1, faults=200, names=list(FAULTS), hosts=3)
    scheduled = Counter(fault.name for each in rounds for fault in each.faults)
    assert scheduled.total() == 200
    assert set(scheduled) == set(FAULTS)
    assert max(scheduled.values()) - min(scheduled.values()) <= 1


def test_it_cuts_networks_for_up_to_a_minute() -> None:
    held = [
        fault.duration_s
        for each in fault_schedule(3, faults=2000, names=["cut network"], hosts=1)
        for fault in each.faults
    ]
    assert min(held) >= 1
    assert 50 < max(held) <= 60


@pytest.fixture
def ended_run(db: None) -> Run:
    """A run with one trial that failed for a reason."""
    run = a_run(a_drive(), trials=1, state="done", ended_at=timezone.now())
    run.trials.update(state="failed", reason_code="fio_error", reason_fields={"message": "fio failed"})
    return run


def an_attempt(run: Run, state: str, number: int = 1) -> Attempt:
    trial = run.trials.get()
    return Attempt.objects.create(
        kind="trial", run=run, trial=trial, host=trial.host, state=state, number=number, lease_until=timezone.now()
    )


def violated(run: Run) -> set[str]:
    found = set()
    for name, query in INVARIANTS.items():
        with connection.cursor() as cursor:
            cursor.execute(query, {"run": str(run.pk)})
            if cursor.fetchall():
                found.add(name)
    return found


def test_the_invariants_allow_a_trial_that_failed_for_a_reason(ended_run: Run) -> None:
    assert violated(ended_run) == set()


def test_the_invariants_forbid_a_trial_without_end_or_reason(ended_run: Run) -> None:
    Trial.objects.update(state="cancelled", reason_code="")
    assert violated(ended_run) == {"trial without a reason"}
    Trial.objects.update(state="planned")
    assert "trial has not ended" in violated(ended_run)
    Run.objects.update(state="closing")
    assert "run is open" in violated(ended_run)


def test_the_invariants_forbid_a_lease_that_is_held(ended_run: Run) -> None:
    an_attempt(ended_run, "accepted")
    assert violated(ended_run) == {"lease held"}


def test_the_invariants_forbid_a_trial_recorded_never_or_twice(ended_run: Run) -> None:
    Trial.objects.update(state="done")
    assert "done trial without exactly one done try, which is the last one" in violated(ended_run)
    for number in (1, 2):
        an_attempt(ended_run, "done", number)
    assert "done trial without exactly one done try, which is the last one" in violated(ended_run)
    assert "trial without exactly one result a stream and direction" in violated(ended_run)


def test_the_invariants_forbid_a_missing_second(ended_run: Run) -> None:
    Trial.objects.update(state="done")
    attempt = an_attempt(ended_run, "done")
    StreamRun.objects.create(
        attempt=attempt, stream=0, job_text="", command=[], started_at=timezone.now(), samples_sent=1
    )  # fmt: skip
    assert "samples missing or too many" in violated(ended_run)


def a_measured_stream(trial: Trial, drive: Target, number: int, stream: int) -> StreamRun:
    """Of a done attempt of try `number` on the host of a drive, with one sample of 101 reads."""
    attempt = Attempt.objects.create(
        kind="trial", run=trial.run, trial=trial, host=drive.host, state="done", number=number,
        lease_until=timezone.now(),
    )  # fmt: skip
    add_samples(attempt, 1)
    attempt.samples.update(stream=stream)
    return StreamRun.objects.create(
        attempt=attempt, stream=stream, job_text="", command=[], started_at=timezone.now(), samples_sent=1
    )


@pytest.fixture
def repeated_on_two_hosts(db: None) -> Run:
    """Its trial was done on one of its two hosts, then, because the other was lost, on both."""
    first, second = a_drive(), a_drive()
    (result,) = Lab(first).measure(202.0, hosts_at_once=2)
    trial = result.trial
    assert trial is not None
    trial.attempts.all().delete()
    a_measured_stream(trial, first, 1, 0)
    Attempt.objects.create(
        kind="trial", run=trial.run, trial=trial, host=second.host, state="lost", lease_until=timezone.now()
    )
    a_measured_stream(trial, second, 2, 1)
    result.stream_run = a_measured_stream(trial, first, 2, 0)
    result.ios, result.bytes = 2 * 101, 2 * 101 * 4096
    result.save(force_insert=True)
    return trial.run


def test_the_invariants_allow_a_try_that_was_repeated_on_all_hosts(repeated_on_two_hosts: Run) -> None:
    assert violated(repeated_on_two_hosts) == set()


def test_the_invariants_forbid_a_result_of_two_tries(repeated_on_two_hosts: Run) -> None:
    Result.objects.update(ios=3 * 101)
    assert violated(repeated_on_two_hosts) == {"samples that do not add up to the result"}


def test_the_invariants_forbid_a_trial_done_twice_on_all_hosts(repeated_on_two_hosts: Run) -> None:
    Attempt.objects.filter(state="lost").update(state="done")
    assert violated(repeated_on_two_hosts) == {"done trial without exactly one done try, which is the last one"}


def test_the_invariants_forbid_a_last_try_that_is_done_on_one_host_only(repeated_on_two_hosts: Run) -> None:
    Attempt.objects.filter(number=2, streams__stream=1).update(state="lost")
    assert violated(repeated_on_two_hosts) == {
        "done trial without exactly one done try, which is the last one",
        "samples that do not add up to the result",
    }


def test_a_refused_worker_is_explained_by_a_second_one_in_this_round_or_the_last() -> None:
    refused = iter((0, 1, 2, 2, 3))

    class Checker(InvariantChecker):
        def _rows(self, query: str, run: str) -> list[tuple[object, ...]]:
            return [(next(refused),)] if query == REFUSED_WORKERS else []

    checker = Checker(SimpleNamespace(hosts=[]))  # type: ignore[arg-type]
    rounds: list[list[str]] = [[], ["second worker"], [], [], []]
    assert [len(checker.permanent("", faults)) for faults in rounds] == [0, 0, 0, 0, 1]


@pytest.mark.pipeline
@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="requires root")
def test_it_survives_a_short_campaign_of_a_fixed_and_a_fresh_seed() -> None:
    options = [
        "--faults",
        "2",
        "--seed",
        FIXED_SEED,
        "--seed",
        "fresh",
        "--hosts",
        "2",
        "--max-seconds",
        "3",
        "--no-final-run",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "dev.faults", *options],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=CAMPAIGN_LIMIT_S, check=False,
    )  # fmt: skip
    print(done.stdout)  # shows the fresh seed if the test fails
    assert done.returncode == 0, done.stdout + done.stderr
