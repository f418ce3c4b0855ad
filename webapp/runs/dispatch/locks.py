"""Locks of drives by attempts: one row per key of `Target.lock_keys`. An attempt gets all its locks or none.

Drives under a layout stay locked by the run until it is closed on that host, because the layout exists between its
trials and other hosts with access to the drives cannot see it. If closing fails, the layout may still exist:

    close failed ─► lock stays with the host ─► the host reports that the drives are empty ─► free
                          └── the same host may use the drives: it removes the old layout, or refuses
"""

import zlib
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.hosts.inventory.lock_groups import in_virtual_drives
from webapp.hosts.models import Host, HostState, Target
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    FurtherTarget,
    HostAction,
    Run,
    TargetLock,
    Trial,
)
from worker.contract.inventory import Inventory

# A lock per host. A transaction that creates or revives an order of the host holds the lock until it ends.

_KEYSPACE = 0x5353  # first half of the key, different from Sweetspot's other advisory locks


def lock_host(host_id: UUID) -> None:
    """Wait for the lock; others wait until this transaction ends.

    The database's constraints would also refuse a second active attempt, but with an error in its log. Two hosts may
    share a key; they then wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_KEYSPACE, _key(host_id)])


def try_lock_host(host_id: UUID) -> bool:
    """Take the lock if no other transaction has it; never wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_KEYSPACE, _key(host_id)])
        return bool(cursor.fetchone()[0])


def _key(host_id: UUID) -> int:
    return zlib.crc32(host_id.bytes) - 2**31


# Locks of a run whose closing failed on a host.
LEFT = Q(attempt__kind=AttemptKind.CLOSE_RUN, attempt__state=AttemptState.FAILED)
# A registration arrives within this time after its inventory, or the worker abandons it.
OLDEST_LOOK_SECONDS = 120


def keys_of(trial: Trial, host_id: UUID | None = None) -> set[str]:
    """The lock keys of all drives that the trial uses, on one of its hosts or on all. Its targets may share drives."""
    return {
        key for target in trial.all_targets for key in target.lock_keys if host_id is None or target.host_id == host_id
    }


def keys_for(attempt: Attempt) -> set[str]:
    """The keys that the attempt locks while active: those of its trial, or of the purged drive."""
    if attempt.trial is not None:
        return keys_of(attempt.trial)
    purging = HostAction.objects.filter(attempt=attempt).exclude(purge="").select_related("target").first()
    return set(purging.target.lock_keys) if purging else set()


def wanting(trials: QuerySet[Trial], keys: Collection[str]) -> QuerySet[Trial]:
    """The trials that use one of these keys."""
    further = FurtherTarget.objects.filter(trial=OuterRef("pk"), target__lock_keys__has_any_keys=list(keys))
    return trials.filter(Q(target__lock_keys__has_any_keys=list(keys)) | Exists(further))


def take_locks(attempt: Attempt, keys: Collection[str]) -> None:
    """Create the locks, sorted to avoid deadlocks. Raises IntegrityError if another run or host holds one."""
    our_locks = TargetLock.objects.filter(_ours(attempt.run_id, attempt.host_id), lock_key__in=list(keys))
    our_keys = set(our_locks.values_list("lock_key", flat=True))
    TargetLock.objects.filter(lock_key__in=our_keys).update(attempt=attempt)
    TargetLock.objects.bulk_create(TargetLock(lock_key=key, attempt=attempt) for key in sorted(set(keys) - our_keys))


def free(trial: Trial) -> bool:
    """Whether all its drives are free now; locking them may still fail."""
    locks = TargetLock.objects.filter(lock_key__in=list(keys_of(trial)))
    hosts = {target.host_id for target in trial.all_targets}
    for host_id in hosts:
        locks = locks.exclude(_ours(trial.run_id, host_id))
    return not locks.exists()


def drop_locks(attempt: Attempt) -> None:
    """Release locks when the attempt ends; of a trial on several hosts, which is locked, when its last attempt ends.

    Locks under a layout are released when the run is closed on the host."""
    if attempt.kind == AttemptKind.CLOSE_RUN and attempt.state != AttemptState.LOST:
        locks = TargetLock.objects.filter(attempt__run=attempt.run_id, attempt__host=attempt.host_id)
        if attempt.state == AttemptState.FAILED and attempt.host.state != HostState.REVOKED:
            locks.update(attempt=attempt)
        else:
            locks.delete()
    elif attempt.trial is not None and attempt.trial.on_several_hosts:
        if not attempt.trial.attempts.filter(state__in=ACTIVE_ATTEMPT_STATES).exists():
            TargetLock.objects.filter(attempt__trial=attempt.trial).delete()
    elif attempt.trial is None or not attempt.trial.has_layout or attempt.host.state == HostState.REVOKED:
        attempt.locks.all().delete()


def drop_all(run: Run) -> None:
    """Release an ended run's locks, also those that a revoked host never closed. Locks left with a host stay."""
    TargetLock.objects.filter(~LEFT | Q(attempt__host__state=HostState.REVOKED), attempt__run=run).delete()


def drop_left(host: Host, inventory: Inventory) -> None:
    """Release locks left with the host if its inventory shows that nothing is built on the drives or mounted.

    `inventory` may be older than the failed closing, so locks of recent failures wait for the next inventory.
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
    """Kernel names of devices in use: with a stacked device, a mount or another holder."""
    devices = inventory.block_devices
    with_holders = {device.name for device in devices if device.holders}
    mounted = {name for system in inventory.file_systems for name in system.devices}
    return with_holders | mounted | {parent for device in devices for parent in device.parents}


def _ours(run_id: UUID | None, host_id: UUID) -> Q:
    """Locks that an attempt of this run on this host may take over; `run_id` None: an attempt without a run."""
    left = LEFT & (Q(attempt__host=host_id) | Q(attempt__host__state=HostState.REVOKED))
    return left if run_id is None else left | Q(attempt__run=run_id, attempt__host=host_id)
