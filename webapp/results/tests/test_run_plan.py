"""`manage.py run_plan`: starts, waits, prints, and its exit code tells the truth."""

import json
import threading
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, Run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, STARTED, failed, run_to_the_end, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


class Worker(threading.Thread):
    """Does every order of one host until the run has ended; the trials with these indexes fail."""

    def __init__(self, target: Target, failing: tuple[int, ...] = ()) -> None:
        super().__init__(daemon=True)
        self.target, self.failing, self.stopping = target, failing, threading.Event()

    def run(self) -> None:
        try:
            while not self.stopping.wait(0.02):
                for attempt in Attempt.objects.filter(host=self.target.host, state__in=ACTIVE_ATTEMPT_STATES):
                    self._do(attempt)
        finally:
            connections.close_all()

    def _do(self, attempt: Attempt) -> None:
        if attempt.kind == AttemptKind.CLOSE_RUN:
            say(self.target.host, attempt, (1, (ACCEPTED, DONE)))
        elif attempt.trial and attempt.trial.index in self.failing:
            say(self.target.host, attempt, (1, (ACCEPTED, STARTED, failed())))
        else:
            run_to_the_end(self.target.host, attempt)

    def stop(self) -> None:
        self.stopping.set()
        self.join(20)


def run_plan(version: PlanVersion, target: Target, *more: str, failing: tuple[int, ...] = ()) -> tuple[str, str]:
    out, progress = StringIO(), StringIO()
    worker = Worker(target, failing)
    worker.start()
    try:
        call_command(
            "run_plan", version.plan.slug, "--host", target.host.slug, "--target", target.slug, "--wait-limit", "30",
            *more, stdout=out, stderr=progress,
        )  # fmt: skip
    finally:
        worker.stop()
        run_plan.printed = out.getvalue()  # type: ignore[attr-defined]
    return out.getvalue(), progress.getvalue()


def test_it_waits_and_prints_every_point_with_its_spread() -> None:
    out, progress = run_plan(a_version(), a_target(), "--wait")
    lines = out.strip().splitlines()
    assert len(lines) == 4
    assert "IOPS" in lines[0]
    assert "100k ± 0" in lines[1]
    assert lines[3] == "Mean ± standard deviation of n repeats."
    assert "4 of 4 trials" in progress
    assert "4 of 4 trials, " not in progress


def test_it_prints_the_run_as_json_and_nothing_else() -> None:
    out, _ = run_plan(a_version(), a_target(), "--wait", "--json")
    found = json.loads(out)
    assert (found["state"], len(found["trials"])) == ("done", 4)
    assert found["trials"][0]["results"][0]["iops"] == 100_000.0


def test_it_ends_badly_if_one_trial_failed() -> None:
    with pytest.raises(CommandError, match="1 trials are not done") as error:
        run_plan(a_version(), a_target(), "--wait", "--json", failing=(1,))
    assert error.value.returncode == 1
    found = json.loads(run_plan.printed)  # type: ignore[attr-defined]
    assert found["trials"][1]["reason_code"] == "fio_error"


def test_it_does_not_wait_unless_told_to() -> None:
    version, target = a_version(), a_target()
    call_command("run_plan", version.plan.slug, "--host", target.host.slug, "--target", target.slug, stderr=StringIO())
    assert Run.objects.get().state == "running"


@pytest.mark.parametrize(("plan", "target"), [("nothing", ""), ("", "nothing")])
def test_it_names_what_there_is_when_a_name_is_wrong(plan: str, target: str) -> None:
    version, there = a_version(), a_target()
    with pytest.raises(CommandError) as error:
        call_command(
            "run_plan", plan or version.plan.slug, "--host", there.host.slug, "--target", target or there.slug
        )  # fmt: skip
    assert error.value.returncode == 2
    assert (str(there) if target else version.plan.slug) in str(error.value)
