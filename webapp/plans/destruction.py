"""Finds the drives and files that trials overwrite, which must be armed by serial number."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.expand import PlannedTrial
from webapp.plans.points import steps_of
from webapp.plans.steps import NO_PREPARATION, Preparation
from worker.contract.layouts import Layout
from worker.contract.workload import TargetKind, Workload
from worker.recipes import writes


def destroys(
    workload: Workload, kind: TargetKind, layout: Layout | None = None, before: Preparation = NO_PREPARATION
) -> bool:
    """A layout always overwrites its drives. Files in a directory are created by the worker, so they do not count.

    `before`: all steps that may come before the trial.
    """
    overwrites = workload.writes or bool(before.purge) or writes(before.steps)
    return layout is not None or (overwrites and kind is not TargetKind.DIRECTORY)


def destroyed(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> list[Target]:
    """Overwritten targets, each once, in the order of the targets; for a pool, every drive that its layouts use."""
    written = {
        (stream.target_id, trial.layout)
        for trial in trials
        for stream in trial.streams
        if destroys(stream.workload, trial.kind, trial.layout, steps_of(trial.point).first)
    }
    return drives_taken(written, targets)


def drives_taken(written: Iterable[tuple[str, Layout | None]], targets: Sequence[Target]) -> list[Target]:
    """The targets with these ids; for a pool its drives, as many as the largest layout uses."""
    most: dict[str, int] = {}
    for target_id, layout in written:
        most[target_id] = max(most.get(target_id, 0), layout.drives if layout else 0)
    found: dict[UUID, Target] = {}
    for target in targets:
        taken = most.get(str(target.pk))
        if taken is not None:
            found |= {each.pk: each for each in (drives_of(target)[:taken] if target.drives else [target])}
    return list(found.values())
