"""Writes of saved comparisons. Operators keep them; one's own may be changed, and by admins everybody's."""

from urllib.parse import parse_qsl, urlencode

from django.db import transaction
from django.utils import timezone

from webapp.compare.models import QUERY_VERSION, SavedComparison
from webapp.compare.options import Pairs, read_options, split
from webapp.compare.query import read_query
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit

MAX_QUERY = 8_000
MAX_TITLE = 200
MAX_NOTE = 20_000


def may_change(saved: SavedComparison, user: User) -> bool:
    return user.is_operator and (saved.owner_id == user.pk or user.is_administrator)


@transaction.atomic
def save_comparison(*, title: str, note: str, query: str, by: User) -> SavedComparison:
    """A new one. Raises Refusal for a title that is missing or too long, or a query that compares nothing."""
    saved = SavedComparison.objects.create(owner=by, **_checked(title, note, query))
    audit(by=by, action="comparison.create", on=saved, detail={"query": saved.query})
    return saved


@transaction.atomic
def change_comparison(*, saved: SavedComparison, title: str, note: str, query: str, by: User) -> SavedComparison:
    """Raises Refusal for somebody else's, one that is deleted, a bad title or a bad query."""
    _require(saved, by)
    if saved.deleted_at is not None:
        raise Refusal("comparison_deleted", f"{saved.title} is deleted. Restore it first.")
    for name, value in _checked(title, note, query).items():
        setattr(saved, name, value)
    saved.query_version = QUERY_VERSION
    saved.save(update_fields=["title", "note", "query", "query_version", "changed_at"])
    audit(by=by, action="comparison.change", on=saved, detail={"query": saved.query})
    return saved


@transaction.atomic
def copy_comparison(*, saved: SavedComparison, by: User) -> SavedComparison:
    """Anybody's, as one's own."""
    title = f"{saved.title[: MAX_TITLE - len(_COPY)]}{_COPY}"
    copy = SavedComparison.objects.create(
        owner=by, title=title, note=saved.note, query=saved.query, query_version=saved.query_version
    )
    audit(by=by, action="comparison.copy", on=copy, detail={"of": saved.pk})
    return copy


_COPY = " (copy)"


@transaction.atomic
def delete_comparison(*, saved: SavedComparison, by: User) -> bool:
    """Whether it was there to be deleted; it can be brought back. Raises Refusal for somebody else's."""
    _require(saved, by)
    found = SavedComparison.objects.filter(pk=saved.pk, deleted_at=None).update(deleted_at=timezone.now())
    if found:
        audit(by=by, action="comparison.delete", on=saved)
    return bool(found)


@transaction.atomic
def restore_comparison(*, saved: SavedComparison, by: User) -> bool:
    """Whether it was deleted. Raises Refusal for somebody else's."""
    _require(saved, by)
    found = SavedComparison.objects.filter(pk=saved.pk, deleted_at__isnull=False).update(deleted_at=None)
    if found:
        audit(by=by, action="comparison.restore", on=saved)
    return bool(found)


def _require(saved: SavedComparison, by: User) -> None:
    if not may_change(saved, by):
        whose = saved.owner.username if saved.owner else "somebody who is gone"
        raise Refusal("not_allowed", f"{saved.title} is {whose}'s: copy it and change the copy.")


def _checked(title: str, note: str, query: str) -> dict[str, str]:
    title, note = title.strip(), note.strip()
    if not title:
        raise Refusal("title_missing", "Give the comparison a title.")
    if len(title) > MAX_TITLE:
        raise Refusal("title_too_long", f"The title has {len(title)} characters; the maximum is {MAX_TITLE}.")
    if len(note) > MAX_NOTE or len(query) > MAX_QUERY:
        raise Refusal("comparison_too_long", "The note or the selection is too long. Shorten the note or select less.")
    return {"title": title, "note": note, "query": _checked_query(query)}


def _checked_query(query: str) -> str:
    """As it is kept. Raises Refusal for what no comparison can be made of."""
    pairs = parse_qsl(query)
    compared, shown = split(pairs)
    read_query(compared)
    read_options(shown)
    return plain_query(pairs)


def plain_query(pairs: Pairs) -> str:
    """The address without what it came from."""
    return urlencode([pair for pair in pairs if pair[0] != "saved" and pair[1]])
