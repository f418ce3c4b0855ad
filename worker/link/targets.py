"""Report the policy's targets and pools to the server, with their permissions and current state."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from worker import guard, policy
from worker.contract.controllers import Controller
from worker.contract.inventory import MAX_WARNINGS, QUARANTINED, PolicyTarget
from worker.contract.workload import TargetKind
from worker.drives.records import Drives
from worker.drives.wear import drives_under
from worker.inventory import sysfs
from worker.journal import BY_HAND, Journal, JournalError, LayoutRecord
from worker.layouts import built_on as built_on_drives
from worker.layouts import removal_command
from worker.link.enrolment import Paths
from worker.link.target_warnings import target_warnings
from worker.policy import Policy, PolicyEntry, Pool
from worker.settings import SETTING_NAMES
from worker.text_limits import MAX_TEXT

log = logging.getLogger(__name__)

POOL_PATH = "/dev"  # of a pool as a target: only its drives have paths


def report_targets(
    allowed: Policy,
    *,
    built_on: Mapping[str, LayoutRecord] | None = None,
    controllers: Collection[Controller] | None = None,
    quarantined: Mapping[str, str] | None = None,
    drives: Drives | None = None,
) -> tuple[PolicyTarget, ...]:
    """Every target and pool with its state now.

    `built_on`: the worker's own layouts by the stable ids of their drives. `quarantined`: stable ids of quarantined
    drives, with the reason. `controllers` are those of an inventory; None: call their tools if the policy has slots,
    which takes time. Without `drives`, no warning says that a drive is purged.
    """
    slots = any(entry.kind is TargetKind.SLOT for entry in allowed.targets)
    known = guard.controllers_now() if controllers is None and slots else tuple(controllers or ())
    layouts, held = built_on or {}, quarantined or {}
    found = {entry.id: _report_entry(entry, allowed, layouts, known, drives, held) for entry in allowed.targets}
    return (*found.values(), *(_report_pool(pool, allowed, found) for pool in allowed.pools))


def report_targets_here(allowed: Policy, paths: Paths) -> tuple[PolicyTarget, ...]:
    """Every target and pool with its state now, and with what the worker's state directory says about its drives."""
    return report_targets(
        allowed,
        built_on=layouts_here(paths),
        quarantined=guard.quarantined(paths.state),
        drives=Drives(paths.drives),
    )


def layouts_here(paths: Paths) -> dict[str, LayoutRecord]:
    """The worker's own layouts by the stable ids of their drives; {} if its journal cannot be read."""
    try:
        if not paths.journal.exists():
            return {}
        with closing(Journal(paths.journal)) as journal:
            return built_on_drives(journal)
    except (JournalError, OSError) as error:
        log.warning("The worker's layouts are unknown: %s", error)
        return {}


def _report_entry(
    entry: PolicyEntry,
    allowed: Policy,
    built_on: Mapping[str, LayoutRecord],
    controllers: Collection[Controller],
    drives: Drives | None,
    quarantined: Mapping[str, str],
) -> PolicyTarget:
    layout = built_on.get(entry.identity)
    found = guard.survey(entry, own_layout=layout is not None, controllers=controllers)
    problem = _quarantine_problem(found.device, quarantined) or found.problem
    return PolicyTarget(
        id=entry.id,
        kind=entry.kind,
        path=entry.path,
        stable_id=entry.identity,
        serial=entry.serial,
        destroy=entry.destroy,
        destroy_signatures=entry.destroy_signatures,
        settings=entry.settings,
        present=not problem,
        problem=problem[:2000],
        max_write_bytes=entry.max_write_bytes,
        size_bytes=found.size_bytes,
        file_system=found.file_system,
        test_file_bytes=found.test_file_bytes,
        logical_block_bytes=_logical_block_bytes(found.device),
        device=found.device,
        opens=found.opens or None,
        model=sysfs.model(found.device)[:200] if found.device else found.model,
        firmware=sysfs.firmware(found.device)[:200] if found.device else found.firmware,
        warnings=() if problem else tuple(_warnings(entry, allowed, layout, found.device, drives))[:MAX_WARNINGS],
    )


def _warnings(
    entry: PolicyEntry, allowed: Policy, layout: LayoutRecord | None, device: str, drives: Drives | None
) -> Iterator[str]:
    """Trials that would be refused come first."""
    if layout is not None and layout.run == BY_HAND:
        yield (
            f"The layout `{layout.line}` was built on it by hand. Trials on this drive are refused until it is taken "
            f"down: {removal_command(layout)}"
        )[:MAX_TEXT]
    may_write = layout is None and entry.kind is TargetKind.BLOCK and entry.destroy
    if may_write and (problem := guard.write_problem(entry, allowed)):
        yield f"Trials that write are refused. {problem}"[:MAX_TEXT]
    if unknown := guard.unknown_signatures(entry):
        yield f"destroy_signatures names {', '.join(unknown)}, which this host's libblkid never reports."[:MAX_TEXT]
    yield from target_warnings(entry, device, drives)


def _logical_block_bytes(device: str) -> int:
    return (sysfs.number(device, "queue/logical_block_size") or 0) if device else 0


def _quarantine_problem(device: str, quarantined: Mapping[str, str]) -> str:
    drives = map(sysfs.stable_id, drives_under([device])) if device else ()
    return next((QUARANTINED + quarantined[drive] for drive in drives if drive in quarantined), "")


def _report_pool(pool: Pool, allowed: Policy, found: Mapping[str, PolicyTarget]) -> PolicyTarget:
    """A pool can be used while all its drives can be used, and allows the settings that all of them allow."""
    reports = [found[name] for name in pool.drives]
    missing = [each for each in reports if not each.present]
    return PolicyTarget(
        id=pool.id,
        kind=TargetKind.POOL,
        path=POOL_PATH,
        stable_id=allowed.identity(pool.id),
        destroy=True,
        settings=_common_settings(reports),
        present=not missing,
        problem="; ".join(f"{each.id}: {each.problem}" for each in missing)[:2000],
        size_bytes=sum(each.size_bytes for each in reports),
        logical_block_bytes=max((each.logical_block_bytes for each in reports), default=0),
        model=", ".join(dict.fromkeys(each.model for each in reports if each.model))[:200],
        drives=pool.drives,
        warnings=tuple(dict.fromkeys(words for each in reports for words in each.warnings))[:MAX_WARNINGS],
    )


def _common_settings(reports: Sequence[PolicyTarget]) -> tuple[str, ...]:
    return tuple(name for name in reports[0].settings if all(name in each.settings for each in reports))


def read_policy(path: Path) -> tuple[Policy | None, str]:
    """The policy, or None (nothing is allowed) with the reason if it cannot be read."""
    try:
        return policy.load(path, SETTING_NAMES), ""
    except policy.PolicyError as error:
        log.error("The policy cannot be read, so nothing is allowed: %s", error)
        return None, str(error)[:2000]
