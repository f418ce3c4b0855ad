"""Steps in orders: who does those that are done once for a part, and how long they may take."""

import pytest

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.arming import arming_of
from webapp.runs.dispatch.orders import largest_bytes, preparation_of, streams_of, total_limit_s
from webapp.runs.models import Attempt, Run, Trial
from webapp.runs.selectors import phase_sentence
from webapp.runs.services import StartOptions, StartRefused, start_run
from webapp.tests.factories.hosts import a_drive
from webapp.tests.factories.runs import start_trial
from worker.contract.workload import FlushStep, WriteStep

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker")]
GIB = 2**30
STEPS = ("once purge discard", "once write 2x sequential 128k", "flush")
FILL = WriteStep(block_bytes=128 * 1024, times=2)


@pytest.fixture
def run() -> Run:
    drive = a_drive(size_bytes=8 * GIB, purges=[{"method": "discard", "problem": ""}])
    parts = (Part(name="reads", factors={"pattern": "randread"}, before=STEPS),)
    document = PlanDocument(title="P", common={"runtime": "3s"}, parts=parts, repeats=3, order=Order.LISTED)
    version = create_plan(document=document, by=None).versions.get()
    with pytest.raises(StartRefused, match="To arm it, type"):
        start_run(version=version, targets=[drive], by=None)
    return start_run(version=version, targets=[drive], by=None, armed=[drive.serial])


def trial(run: Run, repeat: int) -> Trial:
    return Trial.objects.get(run=run, repeat=repeat)


def test_steps_done_once_are_in_the_orders_until_a_trial_has_measured(run: Run) -> None:
    assert arming_of(run)
    assert all(each.destructive for each in run.trials.all()), "any of them may have to write"
    first = preparation_of(trial(run, 1))
    assert (first.purge, first.steps) == ("discard", (FILL, FlushStep()))
    assert preparation_of(trial(run, 2)) == first, "the first one failed before it measured"
    Attempt.objects.all().delete()
    start_trial(trial(run, 1))
    later = preparation_of(trial(run, 2))
    assert (later.purge, later.steps) == ("", (FlushStep(),))


def test_the_first_trial_of_a_run_of_some_trials_counts_the_steps_done_once(run: Run) -> None:
    drive = run.targets.get()
    drive.max_write_bytes = 10 * GIB
    drive.save()
    options = StartOptions(keep=lambda trial: trial.repeat == 3)
    with pytest.raises(StartRefused, match="max_write_bytes"):
        start_run(version=run.version, targets=[drive], by=None, armed=[drive.serial], options=options)


def test_the_limit_of_a_trial_leaves_time_for_its_largest_step(run: Run) -> None:
    one = trial(run, 1)
    streams, before = streams_of(one, one.host_id), preparation_of(one)
    assert largest_bytes(one, before) == 2 * 8 * GIB
    least = total_limit_s(streams[0].workload)
    assert total_limit_s(streams[0].workload, 1, 2 * 8 * GIB) == pytest.approx(least + 2 * 8 * GIB / 1e6, abs=2)


def test_the_phase_says_the_step_and_its_progress(run: Run) -> None:
    attempt = Attempt(phase={"at": 0.0, "name": "prepare", "type": "phase", "stream": 0, "percent": 41.4,
                             "step": {"step": "write", "block_bytes": 131072, "times": 2}})  # fmt: skip
    assert phase_sentence(attempt) == "step before the measurement: write 2x sequential 128 KiB, 41 %"
