"""Rated write endurance of drives, how much of it is used, and the rating that a drive's own figures imply.

A person enters the rating of a target with its source; there is no table of models. It is either terabytes
written (TBW), or drive writes per day (DWPD) for the years of the warranty:

    TBW = DWPD x capacity x 365 x years     (JEDEC JESD218)

Host bytes and percentage used come from the host's last report about the drive's health. Together they imply a
rating: host bytes / percentage used. The percentage is a whole number, so it is accurate to one percentage point.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from django.db import transaction

from webapp.core import formatting
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import EnduranceRating, Target
from worker.contract.inventory import DriveHealth

TB = 10**12
DAYS_A_YEAR = 365
WARRANTY_YEARS = 5.0
MAX_SOURCE_LENGTH = 500
MAX_BYTES = 10**18  # a million TB


@dataclass(frozen=True)
class Endurance:
    """Endurance of the drive under a target. None: unknown."""

    rating: EnduranceRating | None
    host_bytes: int | None
    percent_used: int | None

    @property
    def rated_bytes(self) -> int | None:
        return self.rating.rated_bytes if self.rating else None

    @property
    def left_bytes(self) -> int | None:
        """Bytes left of the rating; the smaller figure if host bytes and percentage used disagree."""
        if self.rated_bytes is None:
            return None
        left = [self.rated_bytes]
        if self.host_bytes is not None:
            left.append(self.rated_bytes - self.host_bytes)
        if self.percent_used is not None:
            left.append(self.rated_bytes * (100 - self.percent_used) // 100)
        return max(0, min(left))

    @property
    def implied_bytes(self) -> tuple[float, float] | None:
        """The smallest and the largest possible rating; None if the drive is almost unused or does not report it."""
        if not self.host_bytes or not self.percent_used:
            return None
        above = self.host_bytes * 100 / (self.percent_used - 1) if self.percent_used > 1 else math.inf
        return self.host_bytes * 100 / (self.percent_used + 1), above


def endurance_of(targets: Sequence[Target]) -> Mapping[UUID, Endurance]:
    """Endurance of each target, whose hosts were fetched with them. One query."""
    ratings = {rating.target_id: rating for rating in EnduranceRating.objects.filter(target__in=targets)}
    return {target.pk: _endurance(target, ratings.get(target.pk)) for target in targets}


def _endurance(target: Target, rating: EnduranceRating | None) -> Endurance:
    health = _health(target)
    return Endurance(rating, health.host_written_bytes if health else None, health.percent_used if health else None)


def _health(target: Target) -> DriveHealth | None:
    """Health of the single drive that the target is or lies on."""
    for plain in target.host.health:
        if (target.serial and plain.get("serial") == target.serial) or plain.get("device") == target.device != "":
            try:
                return msgspec.convert(plain, DriveHealth)
            except msgspec.ValidationError:
                return None
    return None


@transaction.atomic
def rate_endurance(
    *, target: Target, by: User | None, source: str, tbw_tb: float | None = None, dwpd: float | None = None,
    years: float = WARRANTY_YEARS,
) -> None:  # fmt: skip
    """Save the rating of the drive under a target: `tbw_tb` in terabytes, or `dwpd` for `years`.

    Raises Refusal endurance_bad.
    """
    source = source.strip()
    if not source or len(source) > MAX_SOURCE_LENGTH:
        raise Refusal("endurance_bad", f"Enter the source of the rating, in at most {MAX_SOURCE_LENGTH} characters.")
    if target.kind == "pool":
        raise Refusal("endurance_bad", f"{target} is a pool: enter the rating of each of its drives.")
    if (tbw_tb is None) == (dwpd is None):
        raise Refusal("endurance_bad", "Enter either terabytes written (TBW) or drive writes per day (DWPD).")
    if dwpd is not None and target.kind != "block":
        raise Refusal(
            "endurance_bad", f"The drive capacity of {target} (a {target.kind}) is unknown. Enter TBW instead of DWPD."
        )
    rated, basis = _rated(target, tbw_tb, dwpd, years)
    if not 0 < rated <= MAX_BYTES:
        raise Refusal("endurance_bad", f"{basis} is not a valid rating. Enter a number above 0.")
    fields = {"rated_bytes": int(rated), "basis": basis, "source": source, "by": by}
    EnduranceRating.objects.update_or_create(target=target, defaults=fields)
    audit(by=by, action="host.endurance_set", on=target, detail={"rated": basis, "source": source})


def _rated(target: Target, tbw_tb: float | None, dwpd: float | None, years: float) -> tuple[float, str]:
    """The rating in bytes and its basis in words. An invalid number counts as 0, which is refused."""
    if tbw_tb is not None:
        return (tbw_tb * TB if math.isfinite(tbw_tb) else 0), f"{tbw_tb:g} TB written"
    assert dwpd is not None
    size = formatting.bytes_decimal(target.size_bytes)
    rated = dwpd * target.size_bytes * DAYS_A_YEAR * years
    words = f"{dwpd:g} drive writes per day × {size} × {years:g} years"
    return (rated if math.isfinite(rated) and dwpd > 0 and years > 0 else 0), words


@transaction.atomic
def restore_endurance(*, target: Target, rated_bytes: int, basis: str, source: str, by: User | None) -> None:
    """Save a rating that the target had before."""
    fields = {"rated_bytes": rated_bytes, "basis": basis, "source": source, "by": by}
    EnduranceRating.objects.update_or_create(target=target, defaults=fields)
    audit(by=by, action="host.endurance_set", on=target, detail={"rated": basis, "source": source})


@transaction.atomic
def forget_endurance(*, target: Target, by: User | None) -> bool:
    """Delete the rating. False if there is none."""
    gone, _ = EnduranceRating.objects.filter(target=target).delete()
    if gone:
        audit(by=by, action="host.endurance_delete", on=target)
    return bool(gone)
