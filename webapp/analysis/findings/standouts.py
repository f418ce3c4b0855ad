"""Many variants of one thing: most of them are alike, and some stand out.

The middle is the median. Spread is the median absolute deviation, scaled to a standard deviation (1.4826), which half
of the variants cannot change. A variant stands out if it is `FAR` spreads and a factor of `LARGE` away. That most
variants are within `ALIKE` of the median says that what differs between them makes no larger difference. Drives, hosts
and targets are no variants of one thing: those that should be equal have `findings.asymmetry`.
"""

from collections.abc import Iterator, Sequence
from math import exp, log, log1p
from statistics import median

from webapp.analysis.answer import Cell, Finding, FindingKind, Mark
from webapp.analysis.claims import listed
from webapp.analysis.dimensions import PRODUCTS
from webapp.analysis.findings.curves import Charts, change, led

FEWEST = 8  # variants
FAR, FAR_OF_MANY, MANY = 6.0, 4.5, 20  # spreads; of few variants the spread itself is uncertain
LARGE, ALIKE = log1p(0.25), log1p(0.10)
SMALLEST = 0.02  # spread
MOST = 0.6  # share of the variants that are alike
LISTED = 3


def find(charts: Charts) -> Iterator[Finding]:
    if not PRODUCTS.isdisjoint(charts.comparison.series_by):
        return
    for panel in range(len(charts.comparison.panels)):
        if not charts.curves_of(panel):
            for level in range(len(charts.comparison.levels)):
                yield from _at(charts, panel, level)


def _at(charts: Charts, panel: int, level: int) -> Iterator[Finding]:
    """Of the series of a chart at one level of x."""
    series = charts.comparison.panels[panel].series
    cells = [
        (place, cell)
        for place, one_series in enumerate(series)
        for cell in one_series.cells
        if cell.level == level and cell.summary.mean > 0
    ]
    if len(cells) < FEWEST:
        return
    logs = [log(cell.summary.mean) for _, cell in cells]
    middle = median(logs)
    spread = max(1.4826 * median(abs(value - middle) for value in logs), SMALLEST)
    beyond = max(LARGE, (FAR_OF_MANY if len(cells) >= MANY else FAR) * spread)
    far = [
        (place, cell, value - middle)
        for (place, cell), value in zip(cells, logs, strict=True)
        if abs(value - middle) >= beyond
    ]
    name = " ".join(filter(None, (charts.panel_name(panel), _level(charts, level))))
    for together in _alike(far):
        names = [series[place].name for place, _, _ in together]
        off = together[0][2]
        sentence = (
            f"{_listed(names)} stand{'s' if len(names) == 1 else ''} out: {charts.value(together[0][1].summary.mean)}, "
            f"{change(off)} {'against' if abs(off) < log(2) else 'of'} the median of {len(cells)} variants "
            f"({charts.value(exp(middle))})."
        )
        marks = [(place, cell) for place, cell, _ in together]
        yield _stated(charts, FindingKind.STANDOUT, led(name, sentence), panel, marks, abs(off))
    alike = [place_and_cell for place_and_cell, value in zip(cells, logs, strict=True) if abs(value - middle) <= ALIKE]
    if len(alike) >= MOST * len(cells):
        sentence = f"{len(alike)} of {len(cells)} variants are within 10 % of the median, {charts.value(exp(middle))}."
        yield _stated(charts, FindingKind.NO_EFFECT, led(name, sentence), panel, alike, ALIKE)


Far = tuple[int, Cell, float]  # place of the series, its cell, and ln(value / median)


def _alike(far: Sequence[Far]) -> Iterator[list[Far]]:
    """Those with one value together, the farthest first."""
    left = sorted(far, key=lambda standout: -abs(standout[2]))
    while left:
        together = [standout for standout in left if abs(standout[2] - left[0][2]) <= ALIKE]
        left = [standout for standout in left if standout not in together]
        yield together


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - LISTED} more"] if len(names) > LISTED else []
    return listed([*names[:LISTED], *more])


def _level(charts: Charts, level: int) -> str:
    return charts.comparison.levels[level].text if len(charts.comparison.levels) > 1 else ""


def _stated(
    charts: Charts, kind: FindingKind, sentence: str, panel: int, cells: Sequence[tuple[int, Cell]], size: float
) -> Finding:
    marks = tuple(Mark(panel=panel, series=place, first=cell.level, last=cell.level) for place, cell in cells)
    counts = [cell.summary.n for _, cell in cells]
    value = cells[0][1].summary.mean if kind is FindingKind.STANDOUT else None
    return charts.stated(kind, sentence, counts, marks, size=size, value=value)
