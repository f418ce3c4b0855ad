"""Writes that are faster than reads, and random access that is far slower than sequential: patterns of one thing, which
are charts or levels of x.

Patterns with other block sizes are not one thing. Reads are usually faster, so only the opposite is news; random access
is news from `FAR` on. All points of a series must agree, by the rule of `effects`; if they are too few for it, a ratio
of `NEWS` or more is stated as measured.
"""

from collections.abc import Iterator
from itertools import chain
from math import log

from webapp.analysis.answer import Cell, Finding, FindingKind
from webapp.analysis.findings.curves import Charts, led
from webapp.analysis.findings.effects import Pair, part_of, showed, stated

FAR, NEWS = log(3), log(1.25)  # `NEWS`: as measured, without a claim
# The faster one, the slower one, and the least ln(ratio).
_WRITES = (("write", "read", 0.0), ("randwrite", "randread", 0.0))
_PAIRS = (*_WRITES, ("read", "randread", FAR), ("write", "randwrite", FAR))
_READS_AND_WRITES = tuple(f": {faster} against {slower}" for faster, slower, _ in _WRITES)


def find(charts: Charts) -> Iterator[Finding]:
    if not charts.metric.is_speed:
        return
    for faster, slower, least in _PAIRS:
        ratios = [ratio for key in _series(charts) if (ratio := _ratio(charts, key, faster, slower, least))]
        yield from sorted(ratios, key=lambda ratio: -ratio.size)[:1]


def holds_writes_against_reads(finding: Finding) -> bool:
    return finding.about.endswith(_READS_AND_WRITES)


def _series(charts: Charts) -> list[str]:
    return list(dict.fromkeys(series.key for panel in charts.comparison.panels for series in panel.series))


def _ratio(charts: Charts, series: str, faster: str, slower: str, least: float) -> Finding | None:
    """Of one series. Its two patterns are compared at the levels of x that both have."""
    if charts.block_sizes.get(faster) != charts.block_sizes.get(slower):
        return None
    faster_cells, slower_cells = (_cells(charts, series, pattern) for pattern in (faster, slower))
    couples = [
        (faster_cells[level], slower_cells[level]) for level in sorted(faster_cells.keys() & slower_cells.keys())
    ]
    if not couples:
        return None
    places = tuple(dict.fromkeys(_place(charts, series, pattern) for pattern in (faster, slower)))
    panel, index = places[0]
    part = part_of(panel, "", couples)
    is_clear = part.sign(charts.sigma(panel)) > 0
    if min(part.ratios.values()) <= 0 or part.mean < (least if is_clear else max(least, NEWS)):
        return None
    pair = Pair(faster, slower, "", "", (part,), tuple(chain.from_iterable(couples)), places)
    sentence = showed(charts, faster, slower, part.words)
    name = charts.comparison.panels[panel].series[index].name if len(_series(charts)) > 1 else ""
    kind = FindingKind.DIRECTION if is_clear else FindingKind.RATIOS
    return stated(charts, kind, led(name, sentence), pair, part.mean)


def _cells(charts: Charts, series: str, pattern: str) -> dict[int, Cell]:
    """By level of x; at level 0 if patterns are the levels."""
    comparison = charts.comparison
    if comparison.x == "pattern":
        if len(comparison.panels) > 1:
            return {}
        cells = [cell for each in comparison.panels[0].series if each.key == series for cell in each.cells]
        of_pattern = [cell for cell in cells if comparison.levels[cell.level].key == pattern and cell.summary.mean > 0]
        return dict(enumerate(of_pattern))
    panels = [panel for panel in comparison.panels if panel.key == pattern]
    return {
        cell.level: cell
        for panel in panels
        for each in panel.series
        if each.key == series
        for cell in each.cells
        if cell.summary.mean > 0
    }


def _place(charts: Charts, series: str, pattern: str) -> tuple[int, int]:
    """Panel and index of the series in the chart of the pattern."""
    panels = list(enumerate(charts.comparison.panels))
    of_pattern = [each for each in panels if each[1].key == pattern] or panels
    number, panel = of_pattern[0]
    return number, next(place for place, each in enumerate(panel.series) if each.key == series)
