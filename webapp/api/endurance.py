"""The rated write endurance of drives: read, enter, delete."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema, Status

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input
from webapp.hosts.inventory.endurance import WARRANTY_YEARS, Endurance, endurance_of, forget_endurance, rate_endurance
from webapp.hosts.selectors import known_target

router = Router(tags=["hosts"])


class RatingIn(Input):
    """Either `tbw_tb`, terabytes written, or `dwpd`, drive writes per day for `years`. `source`: e.g. a datasheet."""

    tbw_tb: float | None = None
    dwpd: float | None = None
    years: float = WARRANTY_YEARS
    source: str


class EnduranceOut(Schema):
    """`implied_low_bytes`: the minimum implied by host bytes and percentage used; not the manufacturer's rating."""

    rated_bytes: int | None
    basis: str
    source: str
    by: str | None
    at: datetime | None
    host_bytes: int | None
    percent_used: int | None
    left_bytes: int | None
    implied_low_bytes: float | None


def _out(found: Endurance) -> dict[str, object]:
    rating = found.rating
    return {
        "rated_bytes": found.rated_bytes,
        "basis": rating.basis if rating else "",
        "source": rating.source if rating else "",
        "by": rating.by.username if rating and rating.by else None,
        "at": rating.at if rating else None,
        "host_bytes": found.host_bytes,
        "percent_used": found.percent_used,
        "left_bytes": found.left_bytes,
        "implied_low_bytes": found.implied_bytes[0] if found.implied_bytes else None,
    }


@router.get("/hosts/{slug}/targets/{target}/endurance", response=EnduranceOut)
def endurance(request: HttpRequest, slug: str, target: str) -> dict[str, object]:
    """The rated endurance of the drive under a target, and how much of it is used."""
    found = known_target(slug, target)
    return _out(endurance_of([found])[found.pk])


@router.post("/hosts/{slug}/targets/{target}/endurance", response=EnduranceOut, auth=OPERATORS)
def rate(request: HttpRequest, slug: str, target: str, body: RatingIn) -> dict[str, object]:
    """Enter the rated endurance of the drive under a target; this replaces an earlier entry."""
    by, found = operator(request), known_target(slug, target)
    rate_endurance(target=found, by=by, source=body.source, tbw_tb=body.tbw_tb, dwpd=body.dwpd, years=body.years)
    return _out(endurance_of([found])[found.pk])


@router.delete("/hosts/{slug}/targets/{target}/endurance", response={204: None}, auth=OPERATORS)
def forget(request: HttpRequest, slug: str, target: str) -> Status[None]:
    """Delete the entered endurance."""
    by, found = operator(request), known_target(slug, target)
    forget_endurance(target=found, by=by)
    return Status(204, None)
