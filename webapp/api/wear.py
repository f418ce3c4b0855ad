"""Bytes that a run wrote to its drives, and the wear they caused."""

from django.http import HttpRequest
from ninja import Router, Schema

from webapp.api.runs import run_with
from webapp.results.wear import Counted, DriveWear, wear_of

router = Router(tags=["results"])


class CountedOut(Schema):
    """`count` is accurate to `step`; null if unknown, with the reason in `why`."""

    count: int | None
    step: int
    why: str


class AmplificationOut(Schema):
    """`ratio` lies between `low` and `high`; null if the counters are missing or too coarse."""

    ratio: float | None
    low: float
    high: float
    why: str


class DriveWearOut(Schema):
    """Bytes written to a drive, by four counters.

    `engine_bytes` (of `engines`, by label) is the sum for all `together` drives that the trials wrote to at once.
    """

    host: str
    device: str
    drive: str
    serial: str
    model: str
    targets: list[str]
    engines: list[str]
    engine_bytes: int
    together: int
    kernel_bytes: int | None
    kernel_at_least: bool
    host_bytes: CountedOut
    media_bytes: CountedOut
    amplification: AmplificationOut
    percent_before: int | None
    percent_after: int | None
    percent_used: CountedOut
    problem: str

    @staticmethod
    def resolve_percent_used(wear: DriveWear) -> Counted:
        return wear.percent_used


@router.get("/runs/{number}/wear", response=list[DriveWearOut])
def run_wear(request: HttpRequest, number: int) -> list[DriveWear]:
    """Wear of every drive that the run wrote to, so far or in total."""
    return wear_of(run_with(number))
