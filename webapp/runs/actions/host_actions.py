"""Host actions outside any run: purge a drive; read, set or restore a setting; take an inventory.

An action is sent at once and needs an idle host: it does not wait in the queue of runs. It holds the drive's locks like
a trial. The only purge that can be stopped is a discard; a drive that purges itself cannot be stopped. A changed
setting stays until it is restored; later runs take it as the host's value.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Host, Target
from webapp.runs.arming import refuse_untyped
from webapp.runs.dispatch.dispatcher import create_attempt, publish_safely, request_inventory
from webapp.runs.dispatch.locks import lock_host, take_locks
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, AttemptState, HostAction
from webapp.runs.services import refuse_host, refuse_target
from worker.contract.inventory import STOPPABLE, PurgeMethod
from worker.contract.orders import SettingOperation

MAX_REASON_LENGTH = 500
MAX_VALUE_LENGTH = 200
_AUDITED = {
    SettingOperation.READ: "host.setting_read",
    SettingOperation.SET: "host.setting_set",
    SettingOperation.RESTORE: "host.setting_restore",
}


def purge_drive(*, target: Target, method: str, serial: str, why: str, by: User | None) -> HostAction:
    """Purge a drive now; `serial` is the serial number that the person typed.

    Raises Refusal target_unavailable, host_unavailable, not_destroyable, purge_not_offered, not_armed,
    token_may_not_arm, reason_too_long, host_busy, drive_busy.
    """
    target = Target.objects.select_related("host").get(pk=target.pk)
    refuse_target(target)
    refuse_host(target.host, also_in_maintenance=True)
    _refuse_method(target, method)
    refuse_untyped([target], [serial], by=by)
    until = timezone.now() + timedelta(seconds=settings.ARMING_SECONDS)
    host_action = HostAction(target=target, purge=method, armed_until=until, by=by, why=_checked_reason(why))
    detail = {"method": method, "serial": target.arming_serial, "model": target.model, "why": host_action.why}
    try:
        return _send(host_action, AttemptKind.PURGE, target.lock_keys, action="host.purge", detail=detail)
    except IntegrityError as error:
        words = f"A drive of {target} is in use by an attempt on another host. Wait until the attempt has ended."
        raise Refusal("drive_busy", words) from error


@transaction.atomic
def stop_purge(*, action: HostAction, by: User | None) -> None:
    """Stop a purge that the worker does piece by piece. The drive is then partly purged, and its state is unknown.

    The host receives the request with its next report, within a second. A repeated request has no effect. Raises
    Refusal purge_ended, purge_not_stoppable.
    """
    attempt = Attempt.objects.select_for_update(no_key=True).get(pk=action.attempt_id)
    action = HostAction.objects.select_related("target__host").get(pk=action.pk)
    if action.purge not in STOPPABLE:
        raise Refusal(
            "purge_not_stoppable",
            f"The drive of {action.target} purges itself and cannot be stopped. Wait for the end of the purge.",
        )
    if attempt.state not in ACTIVE_ATTEMPT_STATES:
        raise Refusal("purge_ended", f"This purge of {action.target} has ended.")
    if action.stop_requested_at is None:
        HostAction.objects.filter(pk=action.pk).update(stop_requested_at=timezone.now())
        audit(by=by, action="host.purge_stop", on=action.target, detail={"method": action.purge})


def setting_by_hand(
    *, target: Target, name: str, operation: str, value: str = "", why: str = "", by: User | None
) -> HostAction:
    """Read, set or restore one setting of a target, its controller or its host now.

    A changed setting stays until it is restored. Raises Refusal target_unavailable, host_unavailable,
    setting_not_allowed, setting_value, reason_too_long, host_busy.
    """
    target = Target.objects.select_related("host").get(pk=target.pk)
    refuse_target(target)
    refuse_host(target.host, also_in_maintenance=True)
    value = value.strip()
    if name not in settable(target) or operation not in list(SettingOperation):
        raise Refusal(
            "setting_not_allowed", f"The policy of {target.host} does not allow changes of {name!r} of {target}."
        )
    if operation == SettingOperation.SET and not 0 < len(value) <= MAX_VALUE_LENGTH:
        raise Refusal("setting_value", f"Enter the new value, with at most {MAX_VALUE_LENGTH} characters.")
    host_action = HostAction(target=target, setting=name, operation=operation, by=by, why=_checked_reason(why))
    host_action.value = value if operation == SettingOperation.SET else ""
    detail = {"setting": name, "value": host_action.value, "why": host_action.why}
    return _send(host_action, AttemptKind.SETTING, (), action=_AUDITED[SettingOperation(operation)], detail=detail)


@transaction.atomic
def inventory_now(*, host: Host, by: User | None) -> None:
    """Request an inventory from an idle host; the host sends it with its next registration.

    Raises Refusal host_unavailable, host_busy.
    """
    refuse_host(host, also_in_maintenance=True)
    if request_inventory(host.pk) is None:
        raise Refusal("host_busy", f"{host} is busy. Every run takes an inventory before it starts.")
    audit(by=by, action="host.inventory", on=host)


def settable(target: Target) -> list[str]:
    """Names of settings that the policy allows to change through this target, in the worker's order."""
    allowed = {*target.settings_allowed, *target.host.settings_allowed}
    return [name for name in target.host.capabilities.get("settings", []) if name in allowed or "*" in allowed]


def set_by_hand(target: Target) -> list[HostAction]:
    """Settings that were set through this target and may not have been restored, by name."""
    done = HostAction.objects.filter(target=target, operation__in=[SettingOperation.SET, SettingOperation.RESTORE])
    last_by_setting: dict[str, HostAction] = {}
    changed = done.exclude(attempt__setting_changes=None).select_related("attempt", "by").distinct()
    for action in changed.order_by("at"):
        if action.operation == SettingOperation.SET:
            last_by_setting[action.setting] = action
        elif action.attempt.state == AttemptState.DONE:
            last_by_setting.pop(action.setting, None)
    return [last_by_setting[name] for name in sorted(last_by_setting)]


def _checked_reason(why: str) -> str:
    if len(why) > MAX_REASON_LENGTH:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    return why.strip()


def _refuse_method(target: Target, method: str) -> None:
    if not target.destroy:
        raise Refusal("not_destroyable", f"The policy of {target.host} does not allow overwriting {target}.")
    offer = next((offer for offer in target.purges if offer["method"] == method), None)
    if offer is None or method not in list(PurgeMethod):
        raise Refusal("purge_not_offered", f"{target} does not support {method or 'this method'}.")
    if offer.get("problem"):
        raise Refusal("purge_not_offered", f"{target}: {offer['problem']}")


@transaction.atomic
def _send(
    host_action: HostAction, kind: AttemptKind, keys: Collection[str], *, action: str, detail: Mapping[str, object]
) -> HostAction:
    target = host_action.target
    lock_host(target.host_id)
    busy = Attempt.objects.filter(host=target.host_id, state__in=ACTIVE_ATTEMPT_STATES).select_related("run").first()
    if busy is not None:
        what = str(busy.run) if busy.run else "another host action"
        raise Refusal("host_busy", f"{target.host} works on {what}. Wait until it is idle, or pause the run.")
    attempt = create_attempt(kind, target.host_id)
    host_action.attempt = attempt
    host_action.save()
    take_locks(attempt, keys)
    audit(by=host_action.by, action=action, on=target, detail=detail)
    transaction.on_commit(lambda: publish_safely(attempt))
    return host_action
