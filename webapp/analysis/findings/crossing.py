"""Two series that change places: one leads up to a level of x, the other one beyond.

A lead counts if it is `LEAD` or more, and beyond the chart's noise. Each side needs leads at two levels, or one of
`LARGE` that is twice as large as it must be; in between, nobody leads.
"""

from collections.abc import Iterator
from itertools import combinations
from math import log1p

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.curves import Charts, Curve, change

LEAD, LARGE = log1p(0.05), log1p(0.25)
FEWEST = 4  # levels that both have
MOST_PAIRS = 45  # of a chart: ten series


def find(charts: Charts) -> Iterator[Finding]:
    for panel in range(len(charts.comparison.panels)):
        curves = [curve for curve in charts.curves if curve.panel == panel]
        if len(curves) * (len(curves) - 1) <= 2 * MOST_PAIRS:
            for curve, other in combinations(curves, 2):
                if crossed := _crossing(charts, curve, other):
                    yield crossed


def _crossing(charts: Charts, curve: Curve, other: Curve) -> Finding | None:
    shared = [level for level in curve.levels if level in other.points]
    if len(shared) < FEWEST:
        return None
    mine, theirs = ([line.points[level] for level in shared] for line in (curve, other))
    leads = [curve.logs[a] - other.logs[b] for a, b in zip(mine, theirs, strict=True)]
    beyond = max(LEAD, *(charts.least(curve, a, b, other) for a, b in zip(mine, theirs, strict=True)))
    signs = [0 if abs(lead) < beyond else 1 if lead > 0 else -1 for lead in leads]
    known = [sign for sign in signs if sign]
    changes = [place for place in range(1, len(known)) if known[place] != known[place - 1]]
    if len(changes) != 1 or not known:
        return None
    first = [place for place, sign in enumerate(signs) if sign == known[0]]
    second = [place for place, sign in enumerate(signs) if sign == -known[0]]
    if not all(len(side) > 1 or abs(leads[side[0]]) >= max(LARGE, 2 * beyond) for side in (first, second)):
        return None
    before, after = (curve, other) if known[0] > 0 else (other, curve)
    if not charts.metric.is_speed:
        before, after = after, before
    sizes = max(abs(leads[place]) for place in first), max(abs(leads[place]) for place in second)
    names = charts.series_name(before), charts.series_name(after)
    sentence = (
        f"{names[0]} leads up to {charts.at(shared[first[-1]])} ({change(sizes[0])} at most), "
        f"{names[1]} from {charts.at(shared[second[0]])} on ({change(sizes[1])} at most)."
    )
    stretches = [(line, places[first[-1]], places[second[0]]) for line, places in ((curve, mine), (other, theirs))]
    return charts.finding(
        FindingKind.CROSSING, sentence, stretches, size=min(sizes), level=shared[second[0]],
        names=charts.panel_name(curve.panel),
    )  # fmt: skip
