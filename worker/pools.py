"""Pools of a policy: drives that layouts may be built from.

A `[[pool]]` names targets of the same file. Each is a whole drive with `destroy = true`, so that its stable id and
serial stand in one place, and what is built is built only on drives that may be destroyed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from worker.contract.base import Id
from worker.contract.inventory import PolicyTarget
from worker.contract.workload import TargetKind

if TYPE_CHECKING:
    from worker.policy import PolicyEntry

PATH = "/dev"  # of a pool as a target: only its drives lie anywhere


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[pool]]`. Layouts take its drives in this order."""

    id: Id
    drives: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]


def problem(pool: Pool, entries: "Sequence[PolicyEntry]") -> str:
    """What is wrong with it, in words; "" if nothing is."""
    known = {entry.id: entry for entry in entries}
    if unknown := [name for name in pool.drives if name not in known]:
        return f"drives names {unknown[0]!r}, which is none of the targets of this file."
    found = [known[name] for name in pool.drives]
    for entry in found:
        if entry.kind not in (TargetKind.BLOCK, TargetKind.SLOT) or not entry.destroy or entry.read_mounted:
            return f"{entry.id} must be a block device with destroy = true and without read_mounted, or a slot."
    if len({entry.kind for entry in found}) > 1:
        return "drives that the kernel sees and slots of a controller cannot be in one pool."
    if len({entry.identity for entry in found}) < len(found):
        return "a drive is named twice."
    return ""


def identity(pool: Pool, drives: "Sequence[PolicyEntry]") -> str:
    """The stable id of a pool as a target: with other drives, or in another order, it is another one."""
    digest = hashlib.sha256("\n".join(f"{drive.identity} {drive.serial}" for drive in drives).encode()).hexdigest()
    return f"pool:{pool.id}:{digest[:12]}"


def report(pool: Pool, drives: "Sequence[PolicyEntry]", found: Mapping[str, PolicyTarget]) -> PolicyTarget:
    """As a target: it can be used while all its drives can be, and allows what all of them allow."""
    reports = [found[drive.id] for drive in drives]
    missing = [each for each in reports if not each.present]
    allowed = [name for name in reports[0].settings if all(name in each.settings for each in reports)]
    return PolicyTarget(
        id=pool.id,
        kind=TargetKind.POOL,
        path=PATH,
        stable_id=identity(pool, drives),
        destroy=True,
        settings=tuple(allowed),
        present=not missing,
        problem="; ".join(f"{each.id}: {each.problem}" for each in missing)[:2000],
        size_bytes=sum(each.size_bytes for each in reports),
        model=", ".join(dict.fromkeys(each.model for each in reports if each.model))[:200],
        drives=pool.drives,
    )
