"""Checks whether the hosts of a plan support what its trials need: engines, parts of layouts, settings, controllers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from django.utils import timezone

from webapp.hosts.inventory.ceilings import bounds_of
from webapp.hosts.inventory.endurance import Endurance, endurance_of
from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import drives_of
from webapp.plans.bytes_written import written_most
from webapp.plans.estimate import Estimate
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.factors import FACTORS
from webapp.plans.points import steps_of
from webapp.plans.search_space import within_budget
from webapp.plans.setting_rows import OF_CONTROLLERS
from webapp.plans.steps import NO_PREPARATION, Preparation
from worker.contract.inventory import Capabilities, Inventory
from worker.contract.layouts import Layout
from worker.contract.workload import AnyWorkload, TargetKind, Workload
from worker.recipes import installation_words, missing_features
from worker.recipes.layouts.problems import needed, with_package
from worker.recipes.steps import writes

# Compares the maximum that a plan would write with the drives' rated endurance.
#
# For trials with a time limit, the bound is the throughput of the links to the drive (`inventory.ceilings`), and at
# most that of the fastest current drive. Each drive of a pool counts with all bytes written to the pool, because its
# share depends on the layout and is never larger.


@dataclass(frozen=True)
class EnduranceUse:
    """The planned writes to one drive, or to the drive under a target, with its limits."""

    target: Target
    bytes_most: int
    endurance: Endurance

    @property
    def percent_most(self) -> float | None:
        """Share of the rated endurance."""
        rated = self.endurance.rated_bytes
        return None if rated is None else self.bytes_most * 100 / rated

    @property
    def limit_bytes(self) -> int | None:
        """Bytes that its host's policy allows one run to write to it."""
        return self.target.max_write_bytes

    @property
    def over_limit(self) -> bool:
        return self.limit_bytes is not None and self.bytes_most > self.limit_bytes

    @property
    def too_much(self) -> bool:
        """Whether the plan may write more than the remaining rated endurance."""
        left = self.endurance.left_bytes
        return left is not None and self.bytes_most > left


def endurance_uses(expansion: Expansion, cost: Estimate, targets: Sequence[Target]) -> tuple[EnduranceUse, ...]:
    """Planned writes for all written drives that have a rating, a limit in the policy, or a reported wear.

    The hosts of `targets` must have been fetched with them.
    """
    most = cost.written_most
    written = [target for target in targets if most.get(str(target.pk))]
    drives = {target.pk: drives_of(target) or [target] for target in written}
    known = endurance_of([drive for each in drives.values() for drive in each])
    rated = [target for target in written if any(_is_held(drive, known) for drive in drives[target.pk])]
    if rated:
        most = written_most(within_budget(expansion), before=cost.written_before, limits=_limits(rated))
    return tuple(
        EnduranceUse(drive, most[str(target.pk)], known[drive.pk])
        for target in written
        for drive in drives[target.pk]
        if _is_held(drive, known) or known[drive.pk].percent_used is not None
    )


def _is_held(drive: Target, known: Mapping[UUID, Endurance]) -> bool:
    """Whether the drive has any limit to compare with."""
    return known[drive.pk].rating is not None or drive.max_write_bytes is not None


def _limits(targets: Sequence[Target]) -> Mapping[str, float]:
    """Bytes/s by target id, for targets with known links."""
    now = timezone.now()
    bounds = {target.pk: bounds_of({str(target): now}) for target in targets}
    return {str(pk): of_target[0].bytes_per_s for pk, of_target in bounds.items() if of_target}


# Finds the drives and files that trials overwrite, which must be armed by serial number.


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
        (stream.target_id, stream.layout)
        for trial in trials
        for stream in trial.streams
        if destroys(stream.workload, trial.kind, stream.layout, steps_of(trial.point).first)
    }
    return drives_taken(written, targets)


def drives_taken(written: Iterable[tuple[str, Layout | None]], targets: Sequence[Target]) -> list[Target]:
    """The targets with these ids; for a pool its drives, as many as the largest layout uses."""
    most: dict[str, int] = {}
    for target_id, layout in written:
        most[target_id] = max(most.get(target_id, 0), layout.drives if layout else 0)
    drives: dict[UUID, Target] = {}
    for target in targets:
        taken = most.get(str(target.pk))
        if taken is not None:
            drives |= {each.pk: each for each in (drives_of(target)[:taken] if target.drives else [target])}
    return list(drives.values())


def missing_parts(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> list[str]:
    """What a host does not support, such as `store1: layouts with md (package mdadm)`. Hosts without a report are left
    out."""
    host_offers = {str(target.pk): (target.host.slug, capabilities(target.host)) for target in targets}
    missing = set()
    for trial in _distinct(trials):
        for host, offer in (host_offers[id_] for id_ in trial.target_ids):
            missing |= {f"{host}: {lack}" for lack in _lacks(trial, offer)} if offer else set()
    return sorted(missing)


def capabilities(host: Host) -> Capabilities | None:
    """None if the host has not reported them yet."""
    try:
        return msgspec.convert(host.capabilities, Capabilities)
    except msgspec.ValidationError:
        return None


def _distinct(trials: Iterable[PlannedTrial]) -> list[PlannedTrial]:
    """One trial for each set of parts, because plans have thousands of trials."""
    return list({_parts(trial): trial for trial in trials}.values())


def _parts(trial: PlannedTrial) -> tuple[object, ...]:
    return trial.target_ids, trial.layouts, *((work.engine, work.features) for work in trial.workloads), *trial.settings


def _lacks(trial: PlannedTrial, offer: Capabilities) -> list[str]:
    lacks = [lack for work in trial.workloads for lack in _missing(work, offer)]
    parts = dict.fromkeys(part for layout in trial.layouts if layout for part in needed(layout))
    lacks += [f"layouts with {with_package(part)}" for part in parts if part not in offer.layouts]
    return lacks + [f"setting {name}" for name in trial.settings if name not in offer.settings]


def _missing(work: AnyWorkload, offer: Capabilities) -> list[str]:
    lacks = missing_features(work, offer.engines)
    if work.engine not in offer.engines and (words := installation_words(work)):
        return [f"{lack} ({words})" for lack in lacks]
    return lacks


def without_controller(
    trials: Iterable[PlannedTrial], targets: Sequence[Target], inventories: Mapping[UUID, Inventory | None]
) -> Iterator[str]:
    """Sentences about settings of controllers, for devices without one in the inventory."""
    used = {(id_, name) for trial in _distinct(trials) for id_ in trial.target_ids for name in trial.settings}
    for target in targets:
        names = [name for name in OF_CONTROLLERS if (str(target.pk), name) in used]
        inventory = inventories.get(target.host_id)
        devices = inventory.block_devices if inventory else ()
        if names and any(device.name == target.device and not device.controller for device in devices):
            words = ", ".join(FACTORS[name].label for name in names)
            yield f"{target}: {target.device} is not behind a controller, so trials that set {words} fail."
