"""Which drives an attempt holds: the keys of `hosts.lock_groups`, one row for each, taken together or not at all."""

from collections.abc import Collection

from django.db.models import QuerySet

from webapp.runs.models import Attempt, HostAction, TargetLock, Trial


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
    """Raises IntegrityError where an attempt holds one of them. In one order, so that two that try do not cross."""
    TargetLock.objects.bulk_create(TargetLock(lock_key=key, attempt=attempt) for key in sorted(keys))


def free(keys: Collection[str]) -> bool:
    """Whether nobody holds one of them now; taking them may still fail."""
    return not TargetLock.objects.filter(lock_key__in=list(keys)).exists()


def drop_locks(attempt: Attempt) -> None:
    TargetLock.objects.filter(attempt=attempt).delete()
