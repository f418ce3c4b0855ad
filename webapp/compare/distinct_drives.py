"""The number of drives under the targets of a trial, each drive counted once.

Targets are on one drive if they have a lock key or a serial number in common: partitions of a disk, or a drive that
several hosts share.
"""

from collections.abc import Collection, Mapping, Sequence

from webapp.hosts.inventory.lock_groups import WORLD_WIDE
from webapp.hosts.models import Target
from webapp.plans.points import target_count
from webapp.runs.models import Trial


def drives_of_trials(trial_ids: Collection[str]) -> Mapping[str, int]:
    """By trial id, without trials whose number of drives is unknown. Two queries, or none without ids."""
    trials = Trial.objects.filter(pk__in=trial_ids).select_related("target").prefetch_related("further")
    found = {str(trial.pk): _drives_of(trial) for trial in trials}
    return {pk: drives for pk, drives in found.items() if drives}


def _drives_of(trial: Trial) -> int | None:
    targets = trial.all_targets
    return count_drives(targets) if len(targets) == target_count(trial.point) else None


def count_drives(targets: Sequence[Target]) -> int | None:
    """None if unknown: a target has no model, one of several hosts cannot tell a shared drive, or drives with
    different serial numbers have a key in common."""
    several_hosts = len({target.host_id for target in targets}) > 1
    if not all(target.model and _is_identified(target, several_hosts) for target in targets):
        return None
    drives: list[set[str]] = []  # the names of each
    for target in targets:
        names = {*target.lock_keys, *_serial(target)}
        alike = [drive for drive in drives if drive & names]
        drives = [drive for drive in drives if not drive & names] + [names.union(*alike)]
    serials = {serial for target in targets for serial in _serial(target)}
    return len(drives) if len(serials) <= len(drives) else None


def _is_identified(target: Target, several_hosts: bool) -> bool:
    """On several hosts, by a name that is stored in the drive."""
    if not several_hosts:
        return bool(target.lock_keys)
    return bool(target.serial) or any(key.startswith(WORLD_WIDE) for key in target.lock_keys)


def _serial(target: Target) -> list[str]:
    return [f"{target.model}:{target.serial}"] if target.serial else []
