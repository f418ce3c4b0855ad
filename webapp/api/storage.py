"""The size and growth of the database, and which runs are old; for admins."""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema

from webapp.api.common.authentication import ADMINS
from webapp.storage.run_retention import MAX_DAYS, Ages, PlanProposal, proposals
from webapp.storage.sizes import Storage, read_storage

router = Router(tags=["storage"])


class SizeOut(Schema):
    kind: str
    bytes: int
    rows: int
    bytes_per_day: float | None


class StorageOut(Schema):
    database_bytes: int
    bytes_per_day: float | None
    free_bytes: int | None
    days_left: float | None
    sizes: list[SizeOut]


class OldRunsOut(Schema):
    plan: str
    days: int
    runs: list[int]
    kept: list[int]
    bytes: int


@router.get("storage", response=StorageOut, auth=ADMINS)
def storage(request: HttpRequest) -> Storage:
    """The size of the database by kind of data, its growth over 30 days, and when its disk is full at this rate."""
    return read_storage()


@router.get("storage/old-runs", response=list[OldRunsOut], auth=ADMINS)
def old_runs(
    request: HttpRequest,
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)],
    plan: Annotated[str, Field(max_length=80)] = "",
) -> list[PlanProposal]:
    """The runs that retention by age would delete and would keep, by plan, and the space that this frees."""
    return proposals(Ages(0, {plan: days}) if plan else Ages(days, {}), now=timezone.now())
