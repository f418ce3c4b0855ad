"""Ceilings: the lines in charts of bandwidth, sentences about them, and the form in which people enter them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.analysis.known_ceilings import (
    Kind,
    OwnedLink,
    Owner,
    enter_ceiling,
    owned_links,
    remove_ceiling,
)
from webapp.core import formatting
from webapp.core.errors import Refusal
from webapp.hosts.inventory.ceilings import Bound
from webapp.pictures.axes import Axis
from webapp.pictures.charts import DASHED, Line, Mark
from webapp.pictures.elements import MUTED
from webapp.screens.access import operator_action, person
from webapp.screens.payloads import ChartCeiling


@dataclass(frozen=True)
class CeilingForm:
    """What is known of some owners, and a form for more. `back`: the address of the page."""

    owners: tuple[tuple[str, str], ...]  # `kind name` and its words
    rows: tuple["CeilingRow", ...]
    back: str


@dataclass(frozen=True)
class CeilingRow:
    kind: str
    name: str
    place: str  # such as `Controller Areca ARC-1680IX-12`
    text: str  # as it was entered
    limit: str  # `2.00 GB/s`; "" if the text states it
    source: str


def ceiling_form(owners: Iterable[Owner], back: str) -> CeilingForm:
    """One query."""
    listed = list(owners)
    return CeilingForm(
        owners=tuple((f"{kind} {name}", _place(kind, name)) for kind, name in listed),
        rows=tuple(_row(owned) for owned in owned_links(listed)),
        back=back,
    )


def _place(kind: str, name: str) -> str:
    return "This import" if kind == Kind.IMPORT else f"{Kind(kind).label} {name}"


def _row(owned: OwnedLink) -> CeilingRow:
    kind, name = owned.owner
    limit = "" if ":" in owned.text else formatting.bytes_per_s(owned.link.bytes_per_s)
    return CeilingRow(kind, name, _place(kind, name), owned.text, limit, owned.source)


@operator_action
def ceiling_action(request: HttpRequest) -> HttpResponse:
    """Enters a ceiling, or removes it with `remove`. `owner` is kind and name."""
    kind, _, name = str(request.POST.get("owner", "")).partition(" ")
    text = str(request.POST.get("text", ""))
    try:
        if "remove" in request.POST:
            remove_ceiling(kind=kind, name=name, text=text, by=person(request))
            messages.success(request, f"The ceiling {text} is removed.")
        else:
            made = enter_ceiling(kind=kind, name=name, text=text, by=person(request))
            messages.success(request, f"The ceiling {made.text} is saved.")
    except Refusal as refusal:
        messages.error(request, refusal.message)
    back = str(request.POST.get("back", ""))
    is_own = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if is_own and back.startswith("/") else reverse("imports"))


def drawn(bounds: Iterable[Bound]) -> tuple[ChartCeiling, ...]:
    """Targets with the same bound share a line."""
    alike: dict[float, list[Bound]] = {}
    for bound in bounds:
        alike.setdefault(bound.bytes_per_s, []).append(bound)
    return tuple(_drawn(value, each) for value, each in alike.items())


def _drawn(value: float, alike: list[Bound]) -> ChartCeiling:
    known = alike[0].realistic
    return ChartCeiling(
        text=", ".join(bound.target for bound in alike),
        value=value,
        low=known.low_bytes_per_s if known else None,
        high=known.high_bytes_per_s if known else None,
    )


def ceiling_lines(ceilings: Iterable[ChartCeiling], x: Axis) -> Iterator[Line]:
    """In pictures: `Ceiling of storage1/raid: 3.63 GB/s`."""
    for ceiling in ceilings:
        name = f"Ceiling of {ceiling.text}: {formatting.bytes_per_s(ceiling.value)}"
        yield Line(name, MUTED, (Mark(x.low, ceiling.value), Mark(x.high, ceiling.value)), dash=DASHED)


def in_words(bounds: Iterable[Bound]) -> list[str]:
    """A sentence for each: the limiting link and its practical range."""
    return [_in_words(bound) for bound in bounds]


def _in_words(bound: Bound) -> str:
    limit = f"{formatting.bytes_per_s(bound.bytes_per_s)} at most"
    sentence = f"{bound.target} is limited by {bound.words}: {limit}" if bound.words else f"{bound.target}: {limit}"
    if bound.realistic is None:
        return f"{sentence}."
    low, high = bound.realistic.low_bytes_per_s, bound.realistic.high_bytes_per_s
    interval = f"{formatting.bytes_per_s(low)} to {formatting.bytes_per_s(high)}"
    if not bound.words:
        return f"{sentence} ({bound.realistic.source}). A limit of {interval} matches it."
    return f"{sentence}, {interval} in practice ({bound.realistic.source})."
