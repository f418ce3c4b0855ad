"""How much a drive is rated to be written to, what of that is used, and what the drive's own figures imply.

A rating is what a person entered for a target, with its source: nothing here knows models. It is either terabytes
written (TBW), or drive writes a day (DWPD) for the years of the warranty:

    TBW = DWPD x capacity x 365 x years     (JEDEC JESD218)

Host bytes and percentage used are what the host last said of the drive's health. Where both are known they imply a
rating of their own: host bytes / percentage used. The percentage is whole, so it lies within one percent of the truth.
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
    """Of what lies under a target. None: not known."""

    rating: EnduranceRating | None
    host_bytes: int | None
    percent_used: int | None

    @property
    def rated_bytes(self) -> int | None:
        return self.rating.rated_bytes if self.rating else None

    @property
    def left_bytes(self) -> int | None:
        """Of the rating; the lesser where host bytes and percentage used say two things."""
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
        """The least and the greatest rating that fit; None where the drive has hardly been used, or does not tell."""
        if not self.host_bytes or not self.percent_used:
            return None
        above = self.host_bytes * 100 / (self.percent_used - 1) if self.percent_used > 1 else math.inf
        return self.host_bytes * 100 / (self.percent_used + 1), above


def endurance_of(targets: Sequence[Target]) -> Mapping[UUID, Endurance]:
    """Of each target, whose host was fetched with it. One query."""
    ratings = {rating.target_id: rating for rating in EnduranceRating.objects.filter(target__in=targets)}
    return {target.pk: _endurance(target, ratings.get(target.pk)) for target in targets}


def _endurance(target: Target, rating: EnduranceRating | None) -> Endurance:
    told = _health(target)
    return Endurance(rating, told.host_written_bytes if told else None, told.percent_used if told else None)


def _health(target: Target) -> DriveHealth | None:
    """Of the one drive that the target is, or is on whole."""
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
    """Enter what the drive under a target is rated for: `tbw_tb` in terabytes, or `dwpd` for `years`.

    Raises Refusal endurance_bad.
    """
    source = source.strip()
    if not source or len(source) > MAX_SOURCE_LENGTH:
        raise Refusal("endurance_bad", f"Say in up to {MAX_SOURCE_LENGTH} characters where the rating stands.")
    if target.kind == "pool":
        raise Refusal("endurance_bad", f"{target} is a pool: enter the rating of each of its drives.")
    if (tbw_tb is None) == (dwpd is None):
        raise Refusal("endurance_bad", "Enter either terabytes written (TBW) or drive writes a day (DWPD).")
    if dwpd is not None and target.kind != "block":
        raise Refusal("endurance_bad", f"{target} is a {target.kind}, no drive whose capacity is known: enter TBW.")
    rated, basis = _rated(target, tbw_tb, dwpd, years)
    if not 0 < rated <= MAX_BYTES:
        raise Refusal("endurance_bad", f"{basis} is no rating of a drive.")
    fields = {"rated_bytes": int(rated), "basis": basis, "source": source, "by": by}
    EnduranceRating.objects.update_or_create(target=target, defaults=fields)
    audit(by=by, action="host.endurance_set", on=target, detail={"rated": basis, "source": source})


def _rated(target: Target, tbw_tb: float | None, dwpd: float | None, years: float) -> tuple[float, str]:
    """Bytes, and how they came about. What is no number counts as 0, which is refused."""
    if tbw_tb is not None:
        return (tbw_tb * TB if math.isfinite(tbw_tb) else 0), f"{tbw_tb:g} TB written"
    assert dwpd is not None
    size = formatting.bytes_decimal(target.size_bytes)
    rated = dwpd * target.size_bytes * DAYS_A_YEAR * years
    words = f"{dwpd:g} drive writes a day × {size} × {years:g} years"
    return (rated if math.isfinite(rated) and dwpd > 0 and years > 0 else 0), words


@transaction.atomic
def forget_endurance(*, target: Target, by: User | None) -> bool:
    """Take the rating away; False where there is none."""
    gone, _ = EnduranceRating.objects.filter(target=target).delete()
    if gone:
        audit(by=by, action="host.endurance_delete", on=target)
    return bool(gone)
