"""Which drives an attempt holds: the keys of `Target.lock_keys`, one row for each, taken together or not at all.

Drives under a layout stay with the run on that host until it is closed there: what was built stands between its
trials, and another host that sees the drives could not know. Where closing failed, what was built may stand still:

    close failed ─► left with the host ─► the host says that nothing is on them any more ─► free
                          └── the host itself goes on with them: it takes down what is in its way, or refuses
"""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.hosts.inventory.lock_groups import in_virtual_drives
from webapp.hosts.models import Host, HostState, Target
from webapp.runs.models import Attempt, AttemptKind, AttemptState, FurtherTarget, HostAction, Run, TargetLock, Trial
from worker.contract.inventory import Inventory

# Of a run whose closing failed on a host.
LEFT = Q(attempt__kind=AttemptKind.CLOSE_RUN, attempt__state=AttemptState.FAILED)
# A registration takes less from its inventory to its arrival, else the worker gives it up.
OLDEST_LOOK_SECONDS = 120


def keys_of(trial: Trial) -> set[str]:
    """The trial's set of lock keys: of every drive that it uses, on any host. Its own targets may share drives."""
    return {key for target in trial.all_targets for key in target.lock_keys}


def keys_for(attempt: Attempt) -> set[str]:
    """What the attempt must hold while it is active: those of its trial, or of the drive that it purges."""
    if attempt.trial is not None:
        return keys_of(attempt.trial)
    purging = HostAction.objects.filter(attempt=attempt).exclude(purge="").select_related("target").first()
    return set(purging.target.lock_keys) if purging else set()


def wanting(trials: QuerySet[Trial], keys: Collection[str]) -> QuerySet[Trial]:
    """Of these trials, those that use one of these keys."""
    further = FurtherTarget.objects.filter(trial=OuterRef("pk"), target__lock_keys__has_any_keys=list(keys))
    return trials.filter(Q(target__lock_keys__has_any_keys=list(keys)) | Exists(further))


def take_locks(attempt: Attempt, keys: Collection[str]) -> None:
    """Raises IntegrityError where another run or host holds one. In one order, so that two that try do not cross."""
    kept = TargetLock.objects.filter(_ours(attempt.run_id, attempt.host_id), lock_key__in=list(keys))
    own = set(kept.values_list("lock_key", flat=True))
    TargetLock.objects.filter(lock_key__in=own).update(attempt=attempt)
    TargetLock.objects.bulk_create(TargetLock(lock_key=key, attempt=attempt) for key in sorted(set(keys) - own))


def free(trial: Trial) -> bool:
    """Whether nobody else holds a drive of it now; taking them may still fail."""
    held = TargetLock.objects.filter(lock_key__in=list(keys_of(trial)))
    return not held.exclude(_ours(trial.run_id, trial.host_id)).exists()


def drop_locks(attempt: Attempt) -> None:
    """When the attempt ends, but for drives under a layout: those when its run is closed on the host."""
    if attempt.kind == AttemptKind.CLOSE_RUN and attempt.state != AttemptState.LOST:
        kept = TargetLock.objects.filter(attempt__run=attempt.run_id, attempt__host=attempt.host_id)
        if attempt.state == AttemptState.FAILED and attempt.host.state != HostState.REVOKED:
            kept.update(attempt=attempt)
        else:
            kept.delete()
    elif attempt.trial is None or not attempt.trial.has_layout or attempt.host.state == HostState.REVOKED:
        attempt.locks.all().delete()


def drop_all(run: Run) -> None:
    """When it ends: also what a host that was revoked meanwhile never closed. What is left with a host stays there."""
    TargetLock.objects.filter(~LEFT | Q(attempt__host__state=HostState.REVOKED), attempt__run=run).delete()


def drop_left(host: Host, inventory: Inventory) -> None:
    """Free drives that were left with the host where it says that nothing is built on them or mounted.

    `inventory` may be of a moment before closing failed: what failed lately waits for the next one.
    """
    long_ago = timezone.now() - timedelta(seconds=OLDEST_LOOK_SECONDS)
    left = TargetLock.objects.filter(LEFT, attempt__host=host, attempt__ended_at__lt=long_ago)
    keys = set(left.values_list("lock_key", flat=True))
    if keys:
        built = _built_on(inventory)
        drives = Target.objects.filter(host=host, in_policy=True, kind="block", lock_keys__has_any_keys=list(keys))
        busy = in_virtual_drives(inventory) | {k for drive in drives if drive.device in built for k in drive.lock_keys}
        left.filter(lock_key__in=keys - busy).delete()


def _built_on(inventory: Inventory) -> set[str]:
    """Kernel names of devices that something lies on."""
    devices = inventory.block_devices
    held = {device.name for device in devices if device.holders}
    mounted = {name for system in inventory.file_systems for name in system.devices}
    return held | mounted | {parent for device in devices for parent in device.parents}


def _ours(run_id: UUID | None, host_id: UUID) -> Q:
    """Locks that an attempt of this run on this host may take over; `run_id` None: one that belongs to no run."""
    left = LEFT & (Q(attempt__host=host_id) | Q(attempt__host__state=HostState.REVOKED))
    return left if run_id is None else left | Q(attempt__run=run_id, attempt__host=host_id)
