"""What a person asks of a host outside any run: what is refused, what is sent, what the worker's answer becomes."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.models import HostState, Target
from webapp.runs.actions.host_actions import inventory_now, purge_drive, set_by_hand, setting_by_hand, stop_purge
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.models import Attempt, AttemptState, HostAction, TargetLock
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, DONE, failed, queued_orders, run_to_the_end, say
from webapp.tests.factories.runs import a_run
from webapp.tests.refusals import refuses
from worker.contract.inventory import PurgeMethod
from worker.contract.items import Finished, Outcome, Phase, PhaseName, SettingRecord, SettingRestored
from worker.contract.orders import InventoryOrder, PurgeOrder, SettingOperation, SettingOrder
from worker.contract.tests.examples import AT, PURGED

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
OFFERS = [{"method": "discard", "problem": ""}, {"method": "ata_secure_erase", "problem": "Its security is frozen."}]


def drive(**changes: Any) -> Target:
    return a_drive(**({"purges": OFFERS} | changes))


def asked(target: Target, **changes: Any) -> HostAction:
    given: dict[str, Any] = {
        "method": "discard",
        "serial": target.arming_serial,
        "why": "before the lab day",
        "by": a_user(),
    }
    return purge_drive(target=target, **(given | changes))


def test_it_is_sent_signed_armed_and_written_down() -> None:
    target = drive()
    action = asked(target, by=a_user("olga"))
    (order,) = queued_orders(target.host)
    assert isinstance(order, PurgeOrder)
    assert (order.method, order.target.serial) == (PurgeMethod.DISCARD, target.serial)
    assert (order.arming.serials, order.arming.by) == ((target.serial,), "olga")
    assert 3000 < order.arming.until - order.issued_at <= 3601
    assert list(TargetLock.objects.values_list("lock_key", flat=True)) == target.lock_keys
    entry = AuditEntry.objects.get(action="host.purge")
    assert (entry.actor_name, entry.label) == ("olga", str(target))
    assert entry.detail["serial"] == target.serial
    say(target.host, action.attempt, (1, (ACCEPTED, PURGED, DONE)))
    attempt = Attempt.objects.get()
    assert attempt.state == AttemptState.DONE
    assert attempt.purged[0]["samples_not_zero"] == 0
    assert not TargetLock.objects.exists()


def test_a_discard_is_stopped_through_the_answer_to_the_next_report() -> None:
    target = drive()
    action = asked(target)
    assert not say(target.host, action.attempt, (1, (ACCEPTED,))).cancel
    olga = a_user("olga")
    for _ in range(2):
        stop_purge(action=action, by=olga)
    phase = Phase(at=AT, name=PhaseName.PURGE, percent=4.0)
    assert say(target.host, action.attempt, (2, (phase,))).cancel
    entry = AuditEntry.objects.get(action="host.purge_stop")
    assert (entry.actor_name, entry.label) == ("olga", str(target))
    end = Finished(at=AT, outcome=Outcome.CANCELLED, code="cancelled", message="It is partly purged.")
    assert not say(target.host, action.attempt, (3, (end,))).cancel
    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.outcome) == (AttemptState.CANCELLED, "It is partly purged.")
    assert not TargetLock.objects.exists()
    with pytest.raises(Refusal) as refused:
        stop_purge(action=action, by=None)
    assert refused.value.code == "purge_ended"


def test_what_goes_on_in_the_drive_is_not_stopped() -> None:
    target = drive(purges=[{"method": "nvme_sanitize_block", "problem": ""}])
    action = asked(target, method="nvme_sanitize_block")
    with refuses("purge_not_stoppable"):
        stop_purge(action=action, by=None)
    assert not say(target.host, action.attempt, (1, (ACCEPTED,))).cancel


def test_an_idle_host_takes_its_inventory_when_asked() -> None:
    host = a_host()
    inventory_now(host=host, by=a_user("olga"))
    assert [type(order) for order in queued_orders(host)] == [InventoryOrder]
    assert AuditEntry.objects.get(action="host.inventory").actor_name == "olga"
    with pytest.raises(Refusal, match="is busy"):
        inventory_now(host=host, by=None)
    assert AuditEntry.objects.filter(action="host.inventory").count() == 1


def test_what_the_drive_says_no_to_is_told() -> None:
    target = drive()
    action = asked(target)
    say(target.host, action.attempt, (1, (ACCEPTED, failed("purge_refused", "it is write-protected"))))
    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.outcome) == (AttemptState.FAILED, "it is write-protected")


@pytest.mark.parametrize(
    ("target", "given", "code"),
    [
        ({"destroy": False}, {}, "not_destroyable"),
        ({"present": False}, {}, "target_unavailable"),
        ({"in_policy": False}, {}, "target_unavailable"),
        ({"purges": []}, {}, "purge_not_offered"),
        ({}, {"method": "nvme_format"}, "purge_not_offered"),
        ({}, {"method": "rm -rf"}, "purge_not_offered"),
        ({}, {"method": "ata_secure_erase"}, "purge_not_offered"),
        ({}, {"serial": "ANOTHER"}, "not_armed"),
        ({}, {"serial": ""}, "not_armed"),
        ({}, {"why": "x" * 501}, "reason_too_long"),
    ],
)
def test_it_is_refused(target: dict[str, Any], given: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        asked(drive(**target), **given)
    assert refused.value.code == code
    assert not Attempt.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_host_that_is_away_or_revoked_takes_none_and_one_in_maintenance_does() -> None:
    with pytest.raises(Refusal, match="is offline"):
        asked(drive(host=a_host(last_seen_at=timezone.now() - timedelta(hours=1))))
    with pytest.raises(Refusal, match="revoked"):
        asked(drive(host=a_host(state=HostState.REVOKED)))
    with pytest.raises(Refusal, match="is offline"):
        asked(drive(host=a_host(state=HostState.MAINTENANCE, last_seen_at=None)))
    assert asked(drive(host=a_host(state=HostState.MAINTENANCE)))


def test_a_purge_that_is_heard_again_holds_its_drive_again() -> None:
    target = drive()
    attempt = asked(target).attempt
    say(target.host, attempt, (1, (ACCEPTED,)))
    Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert expire_leases() == 1
    assert not TargetLock.objects.exists()
    say(target.host, attempt, (2, (PURGED,)))
    assert list(TargetLock.objects.values_list("lock_key", flat=True)) == target.lock_keys


def test_a_busy_host_is_not_disturbed_and_a_purge_keeps_runs_waiting() -> None:
    target = drive()
    run = a_run(target, trials=1)
    attempt = dispatch_host(target.host_id)
    assert attempt
    with pytest.raises(Refusal, match="works on run 1"):
        asked(target)
    run_to_the_end(target.host, attempt)
    closing = Attempt.objects.get(kind="close_run")
    say(target.host, closing, (1, (ACCEPTED, DONE)))
    action = asked(target)
    a_run(target, trials=1)
    assert dispatch_host(target.host_id) is None
    say(target.host, action.attempt, (1, (ACCEPTED, DONE)))
    assert run.number == 1
    assert Attempt.objects.filter(kind="trial", state=AttemptState.DISPATCHED).count() == 1


def test_a_drive_that_another_host_uses_is_left_alone() -> None:
    here, there = drive(lock_keys=["wwn-1"]), drive(lock_keys=["wwn-1", "wwn-2"])
    a_run(there, trials=1)
    assert dispatch_host(there.host_id)
    with pytest.raises(Refusal) as refused:
        asked(here)
    assert refused.value.code == "drive_busy"
    assert Attempt.objects.count() == 1


# ---- settings

SET = SettingRecord(at=AT, name="scheduler", device="nvme0n1", before="none", asked="kyber", observed="kyber")
BACK = SettingRestored(at=AT, name="scheduler", device="nvme0n1", value="none", observed="none", restored=True)


def by_hand(target: Target, operation: SettingOperation, value: str = "", **changes: Any) -> HostAction:
    given: dict[str, Any] = {
        "name": "scheduler",
        "operation": operation,
        "value": value,
        "why": "a try",
        "by": a_user(),
    }
    return setting_by_hand(target=target, **(given | changes))


def test_a_setting_is_set_by_hand_and_put_back() -> None:
    target = drive()
    made = by_hand(target, SettingOperation.SET, " kyber ")
    (order,) = queued_orders(target.host)
    assert isinstance(order, SettingOrder)
    assert (order.name, order.operation, order.value, order.target.id) == ("scheduler", "set", "kyber", target.slug)
    assert AuditEntry.objects.get().detail == {"setting": "scheduler", "value": "kyber", "why": "a try"}
    assert set_by_hand(target) == [], "the host has not done it yet"
    say(target.host, made.attempt, (1, (ACCEPTED, SET, DONE)))
    assert set_by_hand(target) == [made]
    back = by_hand(target, SettingOperation.RESTORE)
    assert set_by_hand(target) == [made]
    say(target.host, back.attempt, (1, (ACCEPTED, BACK, DONE)))
    assert set_by_hand(target) == []
    said = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert said == ["host.setting_set", "host.setting_restore"]


def test_a_setting_that_the_kernel_changed_to_something_else_is_still_to_be_put_back() -> None:
    target = drive()
    made = by_hand(target, SettingOperation.SET, "kyber")
    say(target.host, made.attempt, (1, (ACCEPTED, SET, failed("setting_clamped", "it is bfq now"))))
    assert set_by_hand(target) == [made]


@pytest.mark.parametrize(
    ("target", "given", "code"),
    [
        ({"settings_allowed": ["nr_requests"]}, {}, "setting_not_allowed"),
        ({}, {"name": "no_such"}, "setting_not_allowed"),
        ({}, {"operation": "destroy"}, "setting_not_allowed"),
        ({}, {"value": "  "}, "setting_value"),
        ({}, {"value": "x" * 201}, "setting_value"),
        ({"present": False}, {}, "target_unavailable"),
        ({"host": {"state": HostState.REVOKED}}, {}, "host_unavailable"),
    ],
)
def test_a_setting_is_refused(target: dict[str, Any], given: dict[str, Any], code: str) -> None:
    host = {"host": a_host(**target.pop("host"))} if "host" in target else {}
    with pytest.raises(Refusal) as refused:
        by_hand(drive(**(target | host)), **({"operation": SettingOperation.SET, "value": "kyber"} | given))
    assert refused.value.code == code
    assert not Attempt.objects.exists()
