"""A host on which too many trials in a row fail gets no more of the run."""

import msgspec
import pytest

from webapp.core.models import AuditEntry
from webapp.hosts.models import Host
from webapp.plans.document import Order, Part
from webapp.plans.models import PlanVersion
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptKind, Run, RunState, TrialState
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import ACCEPTED, CANCELLED, DONE, failed, run_to_the_end, say
from webapp.tests.factories.runs import a_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def version(stop_after: int) -> PlanVersion:
    return a_version(msgspec.structs.replace(DOCUMENT, stop_after=stop_after))


def under_way(host: Host) -> Attempt:
    """What the host has to do, sent now where nothing was."""
    dispatch_host(host.pk)
    return Attempt.objects.filter(host=host, ended_at=None).get()


def fail(host: Host) -> None:
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (failed(),)))


def states(run: Run, host: Host) -> list[str]:
    return list(run.trials.filter(host=host).order_by("index").values_list("state", flat=True))


def test_it_stops_after_so_many_failures_in_a_row_and_puts_settings_back() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=6, version=version(2))
    fail(host)
    run_to_the_end(host, under_way(host))
    fail(host)
    assert TrialState.PLANNED in states(run, host), "a trial that is done begins the count anew"
    fail(host)
    closing = under_way(host)
    assert closing.kind == AttemptKind.CLOSE_RUN
    assert states(run, host) == ["failed", "done", "failed", "failed", "cancelled", "cancelled"]
    say(host, closing, (1, (ACCEPTED,)), (2, (DONE,)))
    run.refresh_from_db()
    assert (run.state, run.reason_code) == (RunState.FAILED, "stopped_by_failures")
    assert "2 of 6 were not started" in run.reason
    assert "2 trials in a row failed" in run.trials.get(index=5).reason
    assert AuditEntry.objects.get(action="run.stop_host").detail == {"host": host.slug, "trials": 2}


def test_it_goes_on_to_the_end_where_the_plan_says_so() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=4, version=version(0))
    for _ in range(4):
        fail(host)
    assert states(run, host) == ["failed"] * 4
    assert under_way(host).kind == AttemptKind.CLOSE_RUN


def test_it_leaves_the_other_hosts_of_the_run_alone() -> None:
    broken, sound = a_host(), a_host()
    run = a_run(a_target(broken), a_target(sound), trials=3, version=version(1))
    fail(broken)
    assert under_way(broken).kind == AttemptKind.CLOSE_RUN
    assert states(run, broken) == ["failed", "cancelled", "cancelled"]
    for _ in range(3):
        run_to_the_end(sound, under_way(sound))
    assert states(run, sound) == ["done"] * 3


def test_steps_done_once_are_repeated_only_once_also_after_a_skipped_trial() -> None:
    parts = tuple(Part(name=name, factors={"pattern": "randread", "size": "64M"}, before=before)
                  for name, before in (("filled", ("once write 1x sequential 128k",)), ("other", ())))  # fmt: skip
    document = msgspec.structs.replace(DOCUMENT, parts=parts, repeats=4, order=Order.LISTED, stop_after=0)
    host = a_host()
    run = start_run(version=a_version(document), targets=[a_target(host)], by=None)
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (CANCELLED,)))
    fail(host)
    run_to_the_end(host, under_way(host))
    assert states(run, host)[:5] == ["cancelled", "failed", "cancelled", "cancelled", "done"]
    words = "2 trials of the part on {} ended before the measurement"
    assert words.format(run.targets.get()) in run.trials.get(index=3).reason


def test_trials_that_fail_after_the_steps_done_once_do_not_end_the_part() -> None:
    part = Part(name="filled", factors={"pattern": "randread", "size": "64M"}, before=("once flush",))
    document = msgspec.structs.replace(DOCUMENT, parts=(part,), repeats=4, order=Order.LISTED, stop_after=0)
    host = a_host()
    run = start_run(version=a_version(document), targets=[a_target(host)], by=None)
    run_to_the_end(host, under_way(host))
    for _ in range(3):
        fail(host)
    assert states(run, host) == ["done", "failed", "failed", "failed"]


def test_it_does_not_count_the_failures_of_another_run() -> None:
    host = a_host()
    target = a_target(host)
    first = a_run(target, trials=2, version=version(3))
    second = a_run(target, trials=2, version=version(3))
    for _ in range(2):
        fail(host)
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (DONE,)))
    fail(host)
    assert states(first, host) == ["failed"] * 2
    assert states(second, host) == ["failed", "planned"] or states(second, host) == ["failed", "dispatched"]
