"""Prices of drive models and controllers. Operators set and remove them."""

import re
from datetime import date
from decimal import Decimal, InvalidOperation

from django.db import transaction

from webapp.compare.models import Price
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit

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
    found = text.strip().upper()
    if not _CURRENCY.fullmatch(found):
        raise Refusal("price_currency", f"{text} is not a currency. Write its three letters, for example EUR.")
    return found


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise Refusal("price_date", f"{text} is not a date. Write it as 2026-11-23.") from None
