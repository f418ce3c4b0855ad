"""The first comparable pairs of Bench with a headline number of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from uuid import UUID

from django.db.models import Count, Max, Sum

from webapp.bench.offered import Pair, pairs
from webapp.bench.products import Kind
from webapp.bench.side_by_side import Asked, Row, side_by_side
from webapp.results.models import Import, Origin
from webapp.results.validity import marks_changed
from webapp.runs.models import Run
from webapp.screens.bench.address import bench_address
from webapp.screens.bench.rows import ShownRow, shown_row

PAIRS_SHOWN = 3
HARDWARE = (Kind.MODEL, Kind.IMPORT)  # not two targets or runs, which may be of one drive


@dataclass(frozen=True)
class ShownPair:
    address: str
    names: tuple[str, str]
    row: ShownRow  # with a value of both
    confounded: str  # a warning if they were measured in different hosts, else ""


def compared() -> tuple[ShownPair, ...]:
    """Four queries, unless an import was made or undone, a reference was loaded again, a run has ended, or results were
    marked since the last time."""
    imports = Import.objects.aggregate(newest=Max("pk"), count=Count("pk"), results=Sum("results_made"))
    tests = Origin.objects.aggregate(newest=Max("pk"))
    ended = Run.objects.exclude(ended_at=None).order_by("-ended_at").values_list("pk", flat=True).first()
    made = imports["count"], imports["results"], tests["newest"]
    return _compared(imports["newest"], made, ended, marks_changed())


@lru_cache(maxsize=1)
def _compared(
    newest: int | None, _imports: tuple[int, int | None, int | None], ended: UUID | None, _marks: int
) -> tuple[ShownPair, ...]:
    """The results of up to six pairs are read, which takes too long for each request."""
    if newest is None and ended is None:
        return ()
    hardware = (pair for pair in pairs() if all(offer.product.kind in HARDWARE for offer in pair.offers))
    return tuple(islice(_shown(hardware), PAIRS_SHOWN))


def _shown(found: Iterator[Pair]) -> Iterator[ShownPair]:
    for pair in found:
        products = tuple(offer.product for offer in pair.offers)
        page = side_by_side(Asked(products, products[0]))
        if row := _headline([row for row in page.headlines if all(row.cells)]):
            words = page.matched.texts[row.workload.key]
            shown = shown_row(row, words, list(page.colours.values()), columns=())
            names = pair.offers[0].text, pair.offers[1].text
            yield ShownPair(bench_address(products), names, shown, page.confounded)


def _headline(rows: Sequence[Row]) -> Row | None:
    """The first pattern at its lowest load: at their highest rate, drives may be equal at the limit of a link."""
    return [row for row in rows if row.panel == rows[0].panel][-1] if rows else None
