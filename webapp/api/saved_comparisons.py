"""Saved comparisons: the question with its title and note. Asked by sending `query` to /compare, or to /bench if it
names products."""

from datetime import datetime
from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.bench.saved import checked_query
from webapp.compare.models import SavedComparison
from webapp.compare.services import (
    MAX_NOTE,
    MAX_QUERY,
    MAX_TITLE,
    change_comparison,
    copy_comparison,
    delete_comparison,
    restore_comparison,
    save_comparison,
)
from webapp.core.errors import NotFound

router = Router(tags=["compare"])


class SavedOut(Schema):
    id: int
    title: str
    note: str
    query: str
    owner: str | None
    created_at: datetime
    changed_at: datetime
    deleted_at: datetime | None

    @staticmethod
    def resolve_owner(saved: SavedComparison) -> str | None:
        return saved.owner.username if saved.owner else None


class NewSaved(Input):
    """`query` as in the address of Explore or Bench, or of `GET /compare`, without `?`."""

    title: str = Field(max_length=MAX_TITLE)
    note: str = Field("", max_length=MAX_NOTE)
    query: str = Field(max_length=MAX_QUERY)


class ChangedSaved(Input):
    """What is left out stays as it is."""

    title: str | None = Field(None, max_length=MAX_TITLE)
    note: str | None = Field(None, max_length=MAX_NOTE)
    query: str | None = Field(None, max_length=MAX_QUERY)


def _saved(pk: int) -> SavedComparison:
    found = SavedComparison.objects.select_related("owner").filter(pk=pk).first()
    if found is None:
        raise NotFound("comparison_unknown", f"There is no saved comparison {pk}.")
    return found


@router.get("/comparisons", response=list[SavedOut])
@paginate(Paged)
def comparisons(request: HttpRequest, show: Literal["all", "own", "deleted"] = "all") -> QuerySet[SavedComparison]:
    """Last changed first."""
    found = SavedComparison.objects.select_related("owner").filter(deleted_at__isnull=show != "deleted")
    return found.filter(owner_id=request.user.pk) if show == "own" else found


@router.post("/comparisons", response={201: SavedOut}, auth=OPERATORS)
def save(request: HttpRequest, body: NewSaved) -> Status[SavedComparison]:
    """Save a comparison."""
    by = operator(request)
    return Status(201, save_comparison(title=body.title, note=body.note, query=body.query, by=by, check=checked_query))


@router.get("/comparisons/{pk}", response=SavedOut)
def saved_comparison(request: HttpRequest, pk: int) -> SavedComparison:
    """Also one that is deleted."""
    return _saved(pk)


@router.post("/comparisons/{pk}", response=SavedOut, auth=OPERATORS)
def change(request: HttpRequest, pk: int, body: ChangedSaved) -> SavedComparison:
    """One's own; an admin everybody's."""
    by, saved = operator(request), _saved(pk)
    kept = {name: getattr(saved, name) for name in ("title", "note", "query")}
    return change_comparison(saved=saved, by=by, check=checked_query, **(kept | body.dict(exclude_none=True)))


@router.post("/comparisons/{pk}/copy", response={201: SavedOut}, auth=OPERATORS)
def copy(request: HttpRequest, pk: int) -> Status[SavedComparison]:
    """Anybody's, as one's own."""
    by = operator(request)
    return Status(201, copy_comparison(saved=_saved(pk), by=by))


@router.delete("/comparisons/{pk}", response={204: None}, auth=OPERATORS)
def delete(request: HttpRequest, pk: int) -> Status[None]:
    """One's own; an admin everybody's. Can be brought back. Safe to repeat."""
    by = operator(request)
    delete_comparison(saved=_saved(pk), by=by)
    return Status(204, None)


@router.post("/comparisons/{pk}/undelete", response=SavedOut, auth=OPERATORS)
def undelete(request: HttpRequest, pk: int) -> SavedComparison:
    """Safe to repeat."""
    by = operator(request)
    restore_comparison(saved=_saved(pk), by=by)
    return _saved(pk)
