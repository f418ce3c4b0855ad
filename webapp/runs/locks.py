"""Which drives an attempt holds: the keys of `hosts.lock_groups`, one row for each, taken together or not at all.

Drives under a layout stay with the run on that host until it is closed there: what was built stands between its
trials, and another host that sees the drives could not know.
"""

from collections.abc import Collection
from uuid import UUID

from django.db.models import QuerySet

from webapp.hosts.models import HostState
from webapp.runs.models import Attempt, AttemptKind, AttemptState, HostAction, Run, TargetLock, Trial


def keys_of(trial: Trial) -> set[str]:
    """The trial's set of lock keys: of every drive that it uses, on any host."""
    return set(trial.target.lock_keys)


def keys_for(attempt: Attempt) -> set[str]:
    """What the attempt must hold while it is active: those of its trial, or of the drive that it purges."""
    if attempt.trial is not None:
        return keys_of(attempt.trial)
    purging = HostAction.objects.filter(attempt=attempt).exclude(purge="").select_related("target").first()
    return set(purging.target.lock_keys) if purging else set()


def wanting(trials: QuerySet[Trial], keys: Collection[str]) -> QuerySet[Trial]:
    """Of these trials, those that use one of these keys."""
    return trials.filter(target__lock_keys__has_any_keys=list(keys))


def take_locks(attempt: Attempt, keys: Collection[str]) -> None:
    """Raises IntegrityError where another run or host holds one. In one order, so that two that try do not cross."""
    kept = _kept(attempt.run_id, attempt.host_id).filter(lock_key__in=list(keys))
    own = set(kept.values_list("lock_key", flat=True))
    kept.update(attempt=attempt)
    TargetLock.objects.bulk_create(TargetLock(lock_key=key, attempt=attempt) for key in sorted(set(keys) - own))


def free(trial: Trial) -> bool:
    """Whether nobody else holds a drive of it now; taking them may still fail."""
    held = TargetLock.objects.filter(lock_key__in=list(keys_of(trial)))
    return not held.exclude(attempt__run=trial.run_id, attempt__host=trial.host_id).exists()


def drop_locks(attempt: Attempt) -> None:
    """When the attempt ends, but for drives under a layout: those when its run is closed on the host."""
    if attempt.kind == AttemptKind.CLOSE_RUN and attempt.state != AttemptState.LOST:
        _kept(attempt.run_id, attempt.host_id).delete()
    elif attempt.trial is None or not attempt.trial.has_layout or attempt.host.state == HostState.REVOKED:
        TargetLock.objects.filter(attempt=attempt).delete()


def drop_all(run: Run) -> None:
    """When it ends: also what a host that was revoked meanwhile never closed."""
    TargetLock.objects.filter(attempt__run=run).delete()


def _kept(run_id: UUID | None, host_id: UUID) -> QuerySet[TargetLock]:
    """Of a run on a host; none of what belongs to no run."""
    if run_id is None:
        return TargetLock.objects.none()
    return TargetLock.objects.filter(attempt__run=run_id, attempt__host=host_id)
