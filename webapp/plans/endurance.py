"""What a plan would write to drives at most, held against what they are rated for.

Where a time ends a trial, the bound is what the links to the drive let through (`inventory.ceilings`), at most what the
fastest drive of today takes. On a pool each drive counts with all that is written to the pool: how much of that it gets
is the layout's affair, and never more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from webapp.hosts.inventory.bounds import bounds_of
from webapp.hosts.inventory.endurance import Endurance, endurance_of
from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.estimate import written_most
from webapp.plans.expand import Expansion


@dataclass(frozen=True)
class EnduranceUse:
    """Of a drive, or of what lies under a target, that has something to tell."""

    target: Target
    bytes_most: int
    endurance: Endurance

    @property
    def percent_most(self) -> float | None:
        """Of the rated endurance."""
        rated = self.endurance.rated_bytes
        return None if rated is None else self.bytes_most * 100 / rated

    @property
    def limit_bytes(self) -> int | None:
        """What the policy of its host lets one run write to it."""
        return self.target.max_write_bytes

    @property
    def over_limit(self) -> bool:
        return self.limit_bytes is not None and self.bytes_most > self.limit_bytes

    @property
    def too_much(self) -> bool:
        """More than is left of the rated endurance."""
        left = self.endurance.left_bytes
        return left is not None and self.bytes_most > left


def endurance_uses(expansion: Expansion, targets: Sequence[Target]) -> tuple[EnduranceUse, ...]:
    """Of all drives that are written and are rated, limited by policy, or tell of their wear.

    `targets` come with their hosts.
    """
    most = written_most(expansion)
    written = [target for target in targets if most.get(str(target.pk))]
    drives = {target.pk: drives_of(target) or [target] for target in written}
    known = endurance_of([drive for each in drives.values() for drive in each])
    rated = [target for target in written if any(_is_held(drive, known) for drive in drives[target.pk])]
    most = {**most, **written_most(expansion, _limits(rated))} if rated else most
    return tuple(
        EnduranceUse(drive, most[str(target.pk)], known[drive.pk])
        for target in written
        for drive in drives[target.pk]
        if _is_held(drive, known) or known[drive.pk].percent_used is not None
    )


def _is_held(drive: Target, known: Mapping[UUID, Endurance]) -> bool:
    """What is written to it is held against something."""
    return known[drive.pk].rating is not None or drive.max_write_bytes is not None


def _limits(targets: Sequence[Target]) -> Mapping[str, float]:
    """Bytes/s by target id, of those whose links are known."""
    now = timezone.now()
    bounds = {target.pk: bounds_of({str(target): now}) for target in targets}
    return {str(pk): found[0].bytes_per_s for pk, found in bounds.items() if found}
