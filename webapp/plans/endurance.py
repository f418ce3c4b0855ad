"""Compares the maximum that a plan would write with the drives' rated endurance.

For trials with a time limit, the bound is the throughput of the links to the drive (`inventory.ceilings`), and at most
that of the fastest current drive. Each drive of a pool counts with all bytes written to the pool, because its share
depends on the layout and is never larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from webapp.hosts.inventory.bounds import bounds_of
from webapp.hosts.inventory.endurance import Endurance, endurance_of
from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.bytes_written import written_most
from webapp.plans.estimate import Estimate
from webapp.plans.expand import Expansion


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
        most = written_most(expansion, before=cost.written_before, limits=_limits(rated))
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
    return {str(pk): found[0].bytes_per_s for pk, found in bounds.items() if found}
