"""Products to choose from: cards with facets, and how much each shares with the chosen ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from django.http import HttpRequest, HttpResponse, QueryDict

from webapp.bench.overlap import Overlap, overlap
from webapp.bench.picking import Facet, Offer, Pair, Source, offered, pairs
from webapp.bench.products import LABELS, MAX_PRODUCTS, BenchRefused, Kind, Product, read_products
from webapp.bench.workloads import factor_words
from webapp.screens.access import page
from webapp.screens.bench.address import bench_address
from webapp.screens.payloads import Payload

COMPARE = "compare"  # in the address if the form was sent: one product is then not enough
KEPT = ("baseline", "metric", "ignore", "hold", "saved")  # if other products are chosen
_LABELS = {
    Facet.KIND: "Kind", Facet.SOURCE: "Source", Facet.MODEL: "Model", Facet.CONTROLLER: "Controller",
    Facet.HOST: "Host", Facet.LAYOUT: "Layout",
}  # fmt: skip
_TEXTS = {
    (Facet.SOURCE, Source.OWN.value): "Own results", (Facet.SOURCE, Source.IMPORT.value): "From imports",
    **{(Facet.KIND, kind.value): texts[1] for kind, texts in LABELS.items()},
}  # fmt: skip


class Share(Payload, frozen=True, kw_only=True):
    """What the card of a product says."""

    product: str  # as in an address
    count: int
    text: str


class Shares(Payload, frozen=True, kw_only=True):
    """Without products of which nothing is known."""

    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Card:
    offer: Offer
    share: Share | None
    is_chosen: bool = False

    @property
    def levels(self) -> str:
        """For the facets, one a line."""
        return "\n".join(f"{facet}:{text}" for facet, text in sorted(self.offer.levels))


@dataclass(frozen=True)
class CardGroup:
    label: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class FacetChoice:
    """`options`: level, text, number of products."""

    facet: Facet
    label: str
    options: tuple[tuple[str, str, int], ...]

    @property
    def is_open(self) -> bool:
        return self.facet in (Facet.KIND, Facet.SOURCE)


@dataclass(frozen=True)
class Picker:
    chosen: tuple[Card, ...]
    groups: tuple[CardGroup, ...]
    kept: tuple[tuple[str, str], ...]  # other keys of the address
    facets: tuple[FacetChoice, ...]
    most: int = MAX_PRODUCTS


def picker(data: QueryDict, chosen: Sequence[Product], *, with_shares: bool = False) -> Picker:
    """The chosen products first, in their order."""
    groups = offered()
    known = {offer.product: offer for group in groups for offer in group.offers}
    shares = {share.product: share for share in _shares(chosen).shares} if with_shares else {}
    card_groups = [
        CardGroup(
            group.label,
            tuple(Card(offer, shares.get(str(offer.product))) for offer in group.offers if offer.product not in chosen),
        )
        for group in groups
    ]
    return Picker(
        tuple(Card(known.get(product) or Offer(product, product.value), None, is_chosen=True) for product in chosen),
        tuple(_most_shared_first([group for group in card_groups if group.cards]) if shares else card_groups),
        tuple((key, text) for key in data for text in data.getlist(key) if key in KEPT),
        tuple(_facets(list(known.values()))),
    )


def _most_shared_first(groups: Sequence[CardGroup]) -> list[CardGroup]:
    """The groups and cards that share nothing are last."""
    sorted_groups = [CardGroup(group.label, tuple(sorted(group.cards, key=_few_shared))) for group in groups]
    return sorted(sorted_groups, key=lambda group: not _few_shared(group.cards[0]))


def _few_shared(card: Card) -> int:
    return -card.share.count if card.share else 0


def _facets(offers: Sequence[Offer]) -> Iterator[FacetChoice]:
    """Those that tell products apart."""
    counts = Counter(level for offer in offers for level in offer.levels)
    texts = _TEXTS | dict(_import_texts(offers))
    for facet in Facet:
        levels = [level for level in counts if level[0] is facet]
        if facet is Facet.KIND:
            levels.sort(key=lambda level: [*Kind].index(Kind(level[1])))
        else:
            levels.sort(key=lambda level: (-counts[level], level[1]))
        options = tuple((level[1], texts.get(level, level[1]), counts[level]) for level in levels)
        if len(options) > 1:
            yield FacetChoice(facet, _LABELS[facet], options)


def _import_texts(offers: Sequence[Offer]) -> Iterator[tuple[tuple[Facet, str], str]]:
    """An import or a reference may have several products, so that their number is stated too."""
    for level, one, several in (
        ((Facet.KIND, Kind.IMPORT.value), "import or reference", "imports and references"),
        ((Facet.SOURCE, Source.REFERENCE.value), "reference", "references"),
    ):
        if count := len({offer.product.number for offer in offers if level in offer.levels}):
            yield level, f"Products of {count} {one if count == 1 else several}"


def comparable_pairs() -> list[tuple[str, Pair]]:
    return [(bench_address([offer.product for offer in pair.offers]), pair) for pair in pairs()]


@page
def bench_shares(request: HttpRequest) -> HttpResponse:
    """What each product shares with those of the query, as JSON."""
    try:
        chosen = read_products(request.GET.getlist("product"))
    except BenchRefused as refusal:
        return HttpResponse(refusal.message, status=422, content_type="text/plain")
    return HttpResponse(msgspec.json.encode(_shares(chosen)), content_type="application/json")


def _shares(chosen: Sequence[Product]) -> Shares:
    known = overlap(chosen)
    return Shares(
        shares=tuple(
            Share(product=name, count=count, text=_share_text(name, count, known, len(chosen)))
            for name, count in known.shared.items()
        )
    )


def _share_text(name: str, count: int, known: Overlap, chosen: int) -> str:
    if not count:
        return "shares none"
    about = "at least " if known.is_cut else "up to " if chosen > 1 else ""
    words = f"shares {about}{count} workload{'s' if count > 1 else ''}"
    if name not in known.steps:
        return words
    factor, level = known.steps[name]
    return f"{words} at {factor_words(factor)} {level}"
