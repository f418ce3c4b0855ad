"""What is refused before a run starts, what starting writes, and what cancelling stops."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from webapp.core.models import AuditEntry
from webapp.hosts.keys import signing_key
from webapp.hosts.models import Host, HostState, Target
from webapp.plans.document import PlanDocument
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run, RunState, Transition, Trial, TrialState
from webapp.runs.selectors import progress
from webapp.runs.services import StartRefused, cancel_run, start_run
from webapp.runs.tests.documents import a_document
from webapp.tests.factories.hosts import CAPABILITIES, a_drive, a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import queued_envelopes, run_to_the_end
from webapp.tests.factories.runs import a_run
from webapp.tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def refusal(target: Target, document: PlanDocument = DOCUMENT, **options: Any) -> StartRefused:
    with pytest.raises(StartRefused) as refused:
        start_run(version=a_version(document), targets=[target], by=None, **options)
    assert not Run.objects.exists()
    return refused.value


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"in_policy": False}, "policy"), ({"present": False, "problem": "unplugged"}, "unplugged")],
)
def test_it_refuses_a_target_that_is_not_there(changes: dict[str, Any], words: str) -> None:
    refused = refusal(a_target(**changes))
    assert refused.code == "target_unavailable"
    assert words in str(refused)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": HostState.MAINTENANCE},
        {"last_seen_at": None},
        {"last_seen_at": timezone.now() - timedelta(hours=1)},
        {"contract": 99},
        {"capabilities": {}},
    ],
)
def test_it_refuses_a_host_that_cannot_run_it_now(changes: dict[str, Any]) -> None:
    assert refusal(a_target(a_host(**changes))).code == "host_unavailable"


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({"ioengine": "libaio"}, "I/O engine libaio"),
        ({"ioengine": "io_uring", "hipri": "on"}, "hipri"),
        ({"scheduler": "none"}, "setting scheduler"),
    ],
)
def test_it_refuses_what_the_host_does_not_offer(factors: dict[str, str], words: str) -> None:
    host = a_host(
        capabilities=CAPABILITIES
        | {"engines": {"fio": {"version": "fio-3.33", "features": ["io_uring"]}}, "settings": []}
    )
    refused = refusal(a_drive(host), a_document(**factors))
    assert refused.code == "capability_missing"
    assert words in str(refused)


def test_it_refuses_a_plan_with_problems() -> None:
    assert refusal(a_target(), a_document(pattern="randread", size="1023t")).code == "plan_problem"


def test_it_refuses_to_destroy_unarmed_and_says_what_to_type() -> None:
    target = a_drive()
    refused = refusal(target, a_document(pattern="randwrite"), armed=["another"])
    assert refused.code == "not_armed"
    assert target.serial in str(refused)


def test_it_asks_for_the_stable_id_of_a_drive_without_a_serial() -> None:
    target = a_drive(serial="")
    assert target.stable_id in str(refusal(target, a_document(pattern="randwrite")))


def test_it_never_destroys_what_the_policy_protects() -> None:
    target = a_drive(destroy=False)
    refused = refusal(target, a_document(pattern="randwrite"), armed=[target.serial])
    assert refused.code in ("not_destroyable", "plan_problem")


def test_it_needs_no_arming_to_read_a_drive_or_to_write_into_a_directory() -> None:
    host = a_host()
    start_run(version=a_version(a_document()), targets=[a_drive(host)], by=None)
    start_run(version=a_version(a_document(pattern="randwrite")), targets=[a_target(host)], by=None)
    assert not Trial.objects.filter(destructive=True).exists()


def test_it_starts_an_armed_run_that_is_never_repeated() -> None:
    target = a_drive()
    run = start_run(
        version=a_version(a_document(pattern="randwrite")), targets=[target], by=a_user(), armed=[target.serial]
    )
    assert set(run.trials.values_list("destructive", "attempts_left", flat=False)) <= {(True, 1), (True, 0)}
    assert run.armed_until
    assert run.armed_by == run.created_by
    armed = AuditEntry.objects.get(action="run.arm")
    assert (armed.label, armed.actor_name) == (str(run), run.created_by.username if run.created_by else "")
    assert armed.detail["drives"] == [f"{target}: {target.serial}"]
    entry = AuditEntry.objects.get(action="run.start")
    assert entry.detail["armed"] == [target.serial]


def test_it_writes_all_trials_with_a_number_of_queries_that_does_not_grow() -> None:
    signing_key()
    counts = []
    for repeats in (1, 20):
        document = msgspec.structs.replace(DOCUMENT, repeats=repeats)
        version, target = a_version(document), a_target()
        with CaptureQueriesContext(connection) as captured:
            run = start_run(version=version, targets=[target], by=None)
        counts.append(len(captured))
        assert run.trials.count() == run.trial_count == 2 * repeats
    assert counts[0] == counts[1], counts


def test_it_numbers_runs_that_start_at_once() -> None:
    version, target = a_version(), a_target()
    found = at_once(*[lambda: start_run(version=version, targets=[target], by=None).number] * 4)
    assert sorted(found) == [1, 2, 3, 4], found  # type: ignore[type-var]
    assert len(queued_envelopes(target.host)) == 1


def test_it_plans_the_same_order_from_the_same_seed() -> None:
    version, target = a_version(), a_target()
    runs = [start_run(version=version, targets=[target], by=None, seed=5) for _ in range(2)]
    points = [list(run.trials.order_by("index").values_list("point_key", "repeat")) for run in runs]
    assert points[0] == points[1]


def test_it_cancels_what_has_not_begun_and_twice_is_once() -> None:
    target = a_target()
    run = a_run(target, trials=3)
    dispatch_host(target.host_id)
    for _ in range(2):
        cancel_run(run=run, by=None)
    assert list(run.trials.order_by("index").values_list("state", flat=True)) == [
        "dispatched",
        "cancelled",
        "cancelled",
    ]
    assert AuditEntry.objects.filter(action="run.cancel").count() == 1
    assert Transition.objects.filter(after="cancelled").count() == 2
    assert run.cancel_requested_at


def test_it_ends_a_run_at_once_that_never_sent_anything() -> None:
    run = a_run(a_target(), trials=2)
    cancel_run(run=run, by=None)
    assert run.state == RunState.CANCELLED
    assert not Attempt.objects.exists()


def test_it_leaves_an_ended_run_as_it_is() -> None:
    run = a_run(a_target(), state=RunState.DONE)
    cancel_run(run=run, by=None)
    assert run.state == RunState.DONE
    assert not AuditEntry.objects.exists()


def test_it_knows_how_far_a_run_is() -> None:
    target = a_target()
    run = a_run(target, trials=4)
    assert progress(run).seconds_left is None
    attempt = dispatch_host(target.host_id)
    assert attempt
    Attempt.objects.update(created_at=timezone.now() - timedelta(seconds=10))
    run_to_the_end(target.host, attempt)
    run.refresh_from_db()
    now = progress(run)
    assert (now.total, now.done, now.failed, now.cancelled, now.lost) == (4, 1, 0, 0, 0)
    assert now.running
    assert (now.running.index, now.running.state) == (1, TrialState.DISPATCHED)
    assert now.seconds_left
    assert 28 < now.seconds_left <= 31


def test_it_sets_up_an_installation_any_number_of_times() -> None:
    for _ in range(2):
        call_command("setup", stdout=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    assert PeriodicTask.objects.filter(task="webapp.runs.tasks.tick", enabled=True).count() == 1
    assert not Host.objects.exists()
