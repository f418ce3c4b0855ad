"""Checks whether the hosts of a plan support what its trials need: engines, parts of layouts, settings, controllers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec

from webapp.hosts.models import Host, Target
from webapp.plans.expand import PlannedTrial
from webapp.plans.factors import FACTORS
from webapp.plans.setting_rows import OF_CONTROLLERS
from worker.contract.inventory import Capabilities, Inventory
from worker.contract.workload import AnyWorkload
from worker.recipes import installation_words, missing_features
from worker.recipes.layouts import needed


def missing_parts(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> list[str]:
    """What a host does not support, such as `store1: layouts with md`. A host without a report is left out."""
    offered = {str(target.pk): (target.host.slug, capabilities(target.host)) for target in targets}
    found = set()
    for trial in _distinct(trials):
        for host, offer in (offered[id_] for id_ in trial.target_ids):
            found |= {f"{host}: {lack}" for lack in _lacks(trial, offer)} if offer else set()
    return sorted(found)


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
    return trial.target_ids, trial.layout, *((work.engine, work.features) for work in trial.workloads), *trial.settings


def _lacks(trial: PlannedTrial, offered: Capabilities) -> list[str]:
    lacks = [lack for work in trial.workloads for lack in _missing(work, offered)]
    lacks += (
        [f"layouts with {part}" for part in needed(trial.layout) if part not in offered.layouts] if trial.layout else []
    )
    return lacks + [f"setting {name}" for name in trial.settings if name not in offered.settings]


def _missing(work: AnyWorkload, offered: Capabilities) -> list[str]:
    lacks = missing_features(work, offered.engines)
    if work.engine not in offered.engines and (words := installation_words(work)):
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
        if names and any(one.name == target.device and not one.controller for one in devices):
            words = ", ".join(FACTORS[name].label for name in names)
            yield f"{target}: {target.device} is not behind a controller, so trials that set {words} fail."
