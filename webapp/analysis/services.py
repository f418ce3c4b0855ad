"""Writes of saved comparisons, their links and frozen numbers, and of the prices of drives and controllers.

`check` and `numbers_of` read a query: those of Explore or of Bench, which depend on this package.
"""

import re
import zlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from webapp.analysis.models import QUERY_VERSION, ComparisonLink, Price, SavedComparison
from webapp.analysis.question import CompareRefused, Pairs, read_options, read_query, split
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.people import lost_rights
from webapp.core.services import audit
from webapp.core.tokens import hash_token, new_token

# Prices of drive models and controllers. Operators set and remove them.

KINDS = ("model", "controller")
MAX_AMOUNT = 1_000_000_000
MAX_NAME = 200
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@transaction.atomic
def set_price(*, kind: str, name: str, amount: str, currency: str, priced_on: str, by: User) -> Price:
    """Replaces an earlier price. Raises Refusal for a value that is not valid."""
    if kind not in KINDS or not 0 < len(name) <= MAX_NAME:
        raise Refusal("price_unknown", f"Only a {' or a '.join(KINDS)} with a name has a price.")
    values = {"amount": _amount(amount), "currency": _currency(currency), "priced_on": _day(priced_on), "set_by": by}
    price, _ = Price.objects.update_or_create(kind=kind, name=name, defaults=values)
    detail = {"amount": str(price.amount), "currency": price.currency, "on": str(price.priced_on)}
    audit(by=by, action="price.set", on=price, detail=detail)
    return price


@transaction.atomic
def remove_price(*, kind: str, name: str, by: User) -> bool:
    """Whether there was one."""
    price = Price.objects.filter(kind=kind, name=name).first()
    if price is None:
        return False
    audit(by=by, action="price.remove", on=price)
    price.delete()
    return True


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text.strip())
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount < MAX_AMOUNT or amount != round(amount, 2):
        raise Refusal("price_amount", f"{text} is not a price. Write a number above 0, for example 249.90.")
    return amount


def _currency(text: str) -> str:
    code = text.strip().upper()
    if not _CURRENCY.fullmatch(code):
        raise Refusal("price_currency", f"{text} is not a currency. Write its three letters, for example EUR.")
    return code


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise Refusal("price_date", f"{text} is not a date. Write it as 2026-11-23.") from None


# Frozen numbers of saved comparisons, as they are stored.

Numbers = TypeVar("Numbers", bound=msgspec.Struct)


def frozen(numbers: msgspec.Struct) -> bytes:
    return zlib.compress(msgspec.json.encode(numbers))


def unfrozen(stored: bytes | memoryview, kind: type[Numbers]) -> Numbers:
    """Raises CompareRefused if another version of Sweetspot froze them."""
    try:
        return msgspec.json.decode(zlib.decompress(bytes(stored)), type=kind)
    except (msgspec.DecodeError, zlib.error) as error:
        message = "The numbers were frozen by another version of Sweetspot, which this version cannot read."
        raise CompareRefused("comparison_unreadable", message) from error


MAX_QUERY = 8_000
MAX_TITLE = 200
MAX_NOTE = 20_000
MAX_LINK_NAME = 100
MAX_SAVED = 5_000  # of one person, also deleted ones, which can be brought back
MAX_LINKS = 100  # of a comparison, also revoked ones, which stay listed


Check = Callable[[str], str]  # the query as it is stored; raises Refusal if it compares nothing


def explore_query(query: str) -> str:
    """The check of a query of Explore."""
    pairs = parse_qsl(query)
    compared, shown = split(pairs)
    read_query(compared)
    read_options(shown)
    return plain_query(pairs)


def may_change(saved: SavedComparison, user: User) -> bool:
    return user.is_operator and (saved.owner_id == user.pk or user.is_administrator)


@transaction.atomic
def save_comparison(*, title: str, note: str, query: str, by: User, check: Check = explore_query) -> SavedComparison:
    """A new one. Raises Refusal for a title that is missing or too long, or a query that compares nothing."""
    _require_place(by)
    saved = SavedComparison.objects.create(owner=by, **_checked(title, note, query, check))
    audit(by=by, action="comparison.create", on=saved, detail={"query": saved.query})
    return saved


@transaction.atomic
def change_comparison(
    *, saved: SavedComparison, title: str, note: str, query: str, by: User, check: Check = explore_query
) -> SavedComparison:
    """Raises Refusal for somebody else's, one that is deleted, a bad title or a bad query."""
    _require(saved, by)
    _require_there(saved)
    checked = _checked(title, note, query, check)
    SavedComparison.objects.select_for_update().get(pk=saved.pk)
    saved.refresh_from_db(fields=["frozen_at", "query"])
    if saved.frozen_at is not None and checked["query"] != saved.query:
        raise Refusal("comparison_frozen", f"The numbers of {saved.title} are frozen. Unfreeze it or save a new one.")
    for name, value in checked.items():
        setattr(saved, name, value)
    saved.query_version = QUERY_VERSION
    saved.save(update_fields=["title", "note", "query", "query_version", "changed_at"])
    audit(by=by, action="comparison.change", on=saved, detail={"query": saved.query})
    return saved


@transaction.atomic
def copy_comparison(*, saved: SavedComparison, by: User) -> SavedComparison:
    """Anybody's, as one's own."""
    _require_place(by)
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
    changed = SavedComparison.objects.filter(pk=saved.pk, deleted_at=None).update(deleted_at=timezone.now())
    if changed:
        audit(by=by, action="comparison.delete", on=saved)
    return bool(changed)


@transaction.atomic
def restore_comparison(*, saved: SavedComparison, by: User) -> bool:
    """Whether it was deleted. Raises Refusal for somebody else's."""
    _require(saved, by)
    changed = SavedComparison.objects.filter(pk=saved.pk, deleted_at__isnull=False).update(deleted_at=None)
    if changed:
        audit(by=by, action="comparison.restore", on=saved)
    return bool(changed)


@transaction.atomic
def freeze_comparison(*, saved: SavedComparison, numbers_of: Callable[[str], bytes | None], by: User) -> None:
    """Keep the numbers that `numbers_of` returns for the query; none without results. Raises Refusal, also for a query
    that has no results any more."""
    _require(saved, by)
    _require_there(saved)
    SavedComparison.objects.select_for_update().get(pk=saved.pk)
    saved.refresh_from_db(fields=["query"])
    numbers = numbers_of(saved.query)
    if not numbers:
        raise Refusal("comparison_empty", f"{saved.title} has no results to freeze.")
    saved.frozen, saved.frozen_at = numbers, timezone.now()
    saved.save(update_fields=["frozen", "frozen_at", "changed_at"])
    audit(by=by, action="comparison.freeze", on=saved)


@transaction.atomic
def unfreeze_comparison(*, saved: SavedComparison, by: User) -> bool:
    """Whether it was frozen. The frozen numbers are deleted. Raises Refusal."""
    _require(saved, by)
    changed = SavedComparison.objects.filter(pk=saved.pk, frozen_at__isnull=False).update(frozen=None, frozen_at=None)
    if changed:
        audit(by=by, action="comparison.unfreeze", on=saved)
    return bool(changed)


@transaction.atomic
def create_link(*, saved: SavedComparison, name: str, by: User) -> str:
    """The token of a new link, which cannot be read again. Raises Refusal."""
    _require(saved, by)
    _require_there(saved)
    name = name.strip()
    if not 0 < len(name) <= MAX_LINK_NAME:
        raise Refusal("link_name", f"Give the link a name of 1 to {MAX_LINK_NAME} characters, for example its reader.")
    if saved.links.count() >= MAX_LINKS:
        raise Refusal("too_many_links", f"{saved.title} has {MAX_LINKS} links, the most allowed. Use a copy of it.")
    plain, token_hash = new_token()
    ComparisonLink.objects.create(comparison=saved, name=name, token_hash=token_hash, created_by=by)
    audit(by=by, action="comparison.link", on=saved, detail={"name": name})
    return plain


@transaction.atomic
def revoke_link(*, link: ComparisonLink, by: User) -> bool:
    """Whether it was valid. Raises Refusal."""
    _require(link.comparison, by)
    changed = ComparisonLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now())
    if changed:
        audit(by=by, action="comparison.link_revoke", on=link.comparison, detail={"name": link.name})
    return bool(changed)


@receiver(lost_rights)
def revoke_links_of(*, user: User, by: User | None, **_: object) -> None:
    """Revoke the links of a person who may no longer share: nobody else knows who has them. A new account, or the same
    one when it is enabled again, gets none of them back, as with sessions and tokens."""
    for link in ComparisonLink.objects.filter(created_by=user, revoked_at=None).select_related("comparison"):
        link.revoked_at, link.with_account = timezone.now(), True
        link.save(update_fields=["revoked_at", "with_account"])
        audit(by=by, action="comparison.link_revoke", on=link.comparison, detail={"name": link.name})


def linked_comparison(token: str) -> SavedComparison | None:
    """The comparison that a valid token shows; None if the link is revoked or the comparison is deleted."""
    links = ComparisonLink.objects.filter(
        token_hash=hash_token(token), revoked_at=None, comparison__deleted_at=None
    ).select_related("comparison")
    link = links.first()
    return link.comparison if link else None


def _require_place(by: User) -> None:
    if SavedComparison.objects.filter(owner=by).count() >= MAX_SAVED:
        raise Refusal("too_many_comparisons", f"You have saved {MAX_SAVED:,} comparisons, the most allowed.")


def _require_there(saved: SavedComparison) -> None:
    if saved.deleted_at is not None:
        raise Refusal("comparison_deleted", f"{saved.title} is deleted. Restore it first.")


def _require(saved: SavedComparison, by: User) -> None:
    if not may_change(saved, by):
        whose = saved.owner.username if saved.owner else "somebody who is gone"
        raise Refusal("not_allowed", f"{saved.title} is {whose}'s: copy it and change the copy.")


def _checked(title: str, note: str, query: str, check: Check) -> dict[str, str]:
    title, note = title.strip(), note.strip()
    if not title:
        raise Refusal("title_missing", "Give the comparison a title.")
    if len(title) > MAX_TITLE:
        raise Refusal("title_too_long", f"The title has {len(title)} characters; the maximum is {MAX_TITLE}.")
    if len(note) > MAX_NOTE or len(query) > MAX_QUERY:
        raise Refusal("comparison_too_long", "The note or the selection is too long. Shorten the note or select less.")
    return {"title": title, "note": note, "query": check(query)}


def plain_query(pairs: Pairs) -> str:
    """The address without what it came from."""
    return urlencode([pair for pair in pairs if pair[0] != "saved" and pair[1]])
