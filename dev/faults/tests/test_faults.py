"""The campaign of faults: what is dealt, whether its witness sees what is wrong, and a short campaign."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from django.db import connection
from django.utils import timezone

from dev.faults.fault_schedule import deal
from dev.faults.faults import KINDS
from dev.faults.queries import RULES
from dev.stack.state import REPOSITORY
from webapp.core.tests.factories import a_drive, a_run
from webapp.results.models import StreamRun
from webapp.runs.models import Attempt, Run, Trial

FIXED_SEED = "7"
CAMPAIGN_LIMIT_S = 400


def test_it_deals_the_same_faults_for_the_same_seed() -> None:
    assert deal(5, faults=50, kinds=list(KINDS), hosts=3) == deal(5, faults=50, kinds=list(KINDS), hosts=3)
    assert deal(5, faults=50, kinds=list(KINDS), hosts=3) != deal(6, faults=50, kinds=list(KINDS), hosts=3)


def test_it_deals_every_kind_equally_often() -> None:
    rounds = deal(1, faults=200, kinds=list(KINDS), hosts=3)
    dealt = Counter(fault.kind for each in rounds for fault in each.faults)
    assert dealt.total() == 200
    assert set(dealt) == set(KINDS)
    assert max(dealt.values()) - min(dealt.values()) <= 1


def test_it_cuts_networks_for_up_to_a_minute() -> None:
    held = [fault.hold_s for each in deal(3, faults=2000, kinds=["cut network"], hosts=1) for fault in each.faults]
    assert min(held) >= 1
    assert 50 < max(held) <= 60


@pytest.fixture
def ended_run(db: None) -> Run:
    """A run with one trial that failed for a reason."""
    run = a_run(a_drive(), trials=1, state="done", ended_at=timezone.now())
    run.trials.update(state="failed", reason_code="fio_error", reason="fio said no")
    return run


def an_attempt(run: Run, state: str, number: int = 1) -> Attempt:
    trial = run.trials.get()
    return Attempt.objects.create(
        kind="trial", run=run, trial=trial, host=trial.host, state=state, number=number, lease_until=timezone.now()
    )


def broken_rules(run: Run) -> set[str]:
    found = set()
    for name, query in RULES.items():
        with connection.cursor() as cursor:
            cursor.execute(query, {"run": str(run.pk)})
            if cursor.fetchall():
                found.add(name)
    return found


def test_its_witness_is_content_with_a_trial_that_failed_for_a_reason(ended_run: Run) -> None:
    assert broken_rules(ended_run) == set()


def test_its_witness_sees_a_trial_without_end_or_reason(ended_run: Run) -> None:
    Trial.objects.update(state="cancelled", reason_code="")
    assert broken_rules(ended_run) == {"trial without a reason"}
    Trial.objects.update(state="planned")
    assert "trial has not ended" in broken_rules(ended_run)
    Run.objects.update(state="closing")
    assert "run is open" in broken_rules(ended_run)


def test_its_witness_sees_a_lease_that_is_held(ended_run: Run) -> None:
    an_attempt(ended_run, "accepted")
    assert broken_rules(ended_run) == {"lease held"}


def test_its_witness_sees_a_trial_recorded_never_or_twice(ended_run: Run) -> None:
    Trial.objects.update(state="done")
    assert "done trial without exactly one done attempt" in broken_rules(ended_run)
    for number in (1, 2):
        an_attempt(ended_run, "done", number)
    assert "done trial without exactly one done attempt" in broken_rules(ended_run)
    assert "trial without exactly one result a direction" in broken_rules(ended_run)


def test_its_witness_sees_a_missing_second(ended_run: Run) -> None:
    Trial.objects.update(state="done")
    attempt = an_attempt(ended_run, "done")
    StreamRun.objects.create(
        attempt=attempt, stream=0, job_text="", command=[], started_at=timezone.now(), samples_sent=1
    )  # fmt: skip
    assert "seconds missing or too many" in broken_rules(ended_run)


@pytest.mark.pipeline
@pytest.mark.alone
@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="takes root")
def test_it_survives_a_short_campaign_of_a_fixed_and_a_fresh_seed() -> None:
    options = ["--faults", "2", "--seed", FIXED_SEED, "--seed", "fresh", "--hosts", "2", "--longest", "3", "--no-calm"]
    done = subprocess.run(
        [sys.executable, "-m", "dev.faults", *options],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=CAMPAIGN_LIMIT_S, check=False,
    )  # fmt: skip
    print(done.stdout)  # the fresh seed, should it fail
    assert done.returncode == 0, done.stdout + done.stderr
