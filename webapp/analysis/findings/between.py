"""Findings between the series and charts of a comparison: a higher level of the series that brings nothing more, the
effect of a factor in each chart (a gain here may cost there), and the price of writes among reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log, log1p
from statistics import fmean

from webapp.analysis.answer import Finding, FindingKind, Mark
from webapp.analysis.cells import levels_of
from webapp.analysis.claims import MIN_BLOCKS, listed
from webapp.analysis.findings.breaks import outliers
from webapp.analysis.findings.curves import COUNTED, Charts, Curve, change, counted, led
from webapp.core.formatting import ratio as as_ratio

ALIKE, MEAN_ALIKE = log1p(0.05), log1p(0.03)
MOSTLY = 0.8  # of the levels of x
FEWEST = 4  # levels of x that are compared
BEFORE = log1p(0.20)  # what the step before brought
GAIN, LOSS = log1p(0.10), log1p(0.05)
MIX = log1p(0.15)  # reads are faster than the mix by at least so much
_MIXED = {"randread": "randrw", "read": "readwrite"}
MOST_LEVELS = 6  # of a factor whose effect is said


def find(charts: Charts) -> Iterator[Finding]:
    if charts.metric.is_speed:
        yield from _nothing_more(charts)
        yield from _mix_costs(charts)
    yield from _effects(charts)
    yield from _by_level(charts)


def _ratios(one: Curve, other: Curve) -> dict[int, float]:
    """ln(one / other) by level."""
    theirs = dict(zip(other.levels, other.logs, strict=True))
    return {level: value - theirs[level] for level, value in zip(one.levels, one.logs, strict=True) if level in theirs}


# ---- more of the series brings no more


def _nothing_more(charts: Charts) -> Iterator[Finding]:
    """The series are levels of one count, such as jobs."""
    series_by = charts.comparison.series_by
    if len(series_by) != 1 or series_by[0] not in COUNTED:
        return
    for panel in range(len(charts.comparison.panels)):
        numbers = {_key(charts, curve): curve for curve in charts.curves if curve.panel == panel and len(curve)}
        ordered = [numbers[key] for key in sorted(numbers, key=float)]
        for first in range(1, len(ordered) - 1):
            tail = ordered[first:]
            steps = [_ratios(b, a) for a, b in pairwise(tail)]
            brought = _brought(charts, tail[0], ordered[first - 1])
            if all(map(_is_alike, steps)) and brought and fmean(brought) >= BEFORE:
                yield _no_more(charts, tail, steps, ordered[first - 1], fmean(brought))
                break


def _brought(charts: Charts, more: Curve, less: Curve) -> list[float]:
    """ln(ratio) at each level without a value that is out of line."""
    out = {curve.levels[place] for curve in (more, less) for place, _ in outliers(charts, curve)}
    return [ratio for level, ratio in _ratios(more, less).items() if level not in out]


def _key(charts: Charts, curve: Curve) -> str:
    return charts.comparison.panels[curve.panel].series[curve.series].key


def _is_alike(ratios: Mapping[int, float]) -> bool:
    alike = sum(abs(each) <= ALIKE for each in ratios.values())
    return len(ratios) >= FEWEST and alike >= MOSTLY * len(ratios) and abs(fmean([*ratios.values()])) <= MEAN_ALIKE


def _no_more(
    charts: Charts, tail: Sequence[Curve], steps: Sequence[Mapping[int, float]], before: Curve, brought: float
) -> Finding:
    total, alike = sum(map(len, steps)), sum(abs(each) <= ALIKE for step in steps for each in step.values())
    name, less = (counted(charts.comparison.series_by[0], _key(charts, curve)) for curve in (tail[0], before))
    where = f"all {total}" if alike == total else f"{alike} of {total}"
    sentence = (
        f"More than {name} bring nothing more, within 5 % at {where} points; {name} reach {as_ratio(exp(brought))} the "
        f"{charts.subject} of {less}."
    )
    stretches = [(curve, 0, len(curve) - 1) for curve in tail]
    panel = charts.panel_name(tail[0].panel)
    return charts.finding(FindingKind.NOTHING_MORE, sentence, stretches, size=brought, names=panel)


# ---- the effect of a factor of the series, chart by chart


def _by_level(charts: Charts) -> Iterator[Finding]:
    """Along words on x, such as read and write, a mean over them describes neither: each level is said by itself. With
    three repeats or more, each has to be a claim of the page."""
    if any(curve.levels for curve in charts.curves):
        return
    for panel_index, panel in enumerate(charts.comparison.panels):
        base = next((index for index, one in enumerate(panel.series) if one.is_baseline), None)
        for index, one in enumerate(panel.series):
            cells = [cell for cell in one.cells if cell.against_baseline and cell.against_baseline.ratio.value > 0]
            fewest = min((cell.against_baseline.n for cell in cells if cell.against_baseline), default=0)
            if base is None or not 2 <= len(cells) <= MOST_LEVELS:
                continue
            if fewest < MIN_BLOCKS or all(c.against_baseline and c.against_baseline.better is not None for c in cells):
                ratios = {cell.level: log(cell.against_baseline.ratio.value) for cell in cells if cell.against_baseline}
                if max(ratios.values()) - min(ratios.values()) >= LOSS and max(map(abs, ratios.values())) >= LOSS:
                    yield _levels(charts, panel_index, (index, base), ratios, fewest)


def _levels(charts: Charts, panel: int, series: tuple[int, int], ratios: Mapping[int, float], fewest: int) -> Finding:
    one, base = (charts.comparison.panels[panel].series[each] for each in series)
    parts = [f"{charts.comparison.levels[level].text} {change(ratio)}" for level, ratio in ratios.items()]
    is_mixed = max(ratios.values()) >= LOSS and min(ratios.values()) <= -LOSS
    few = f" (n = {fewest}: too few repeats)" if 1 < fewest < MIN_BLOCKS else ""
    return Finding(
        kind=FindingKind.TRADE_OFF if is_mixed else FindingKind.EFFECT,
        sentence=led(
            charts.panel_name(panel), f"{one.name} against {base.name}: {listed(parts)} in {charts.subject}{few}."
        ),
        single=fewest == 1,
        size=max(map(abs, ratios.values())),
        marks=(Mark(panel=panel, series=series[0], first=min(ratios), last=max(ratios)),),
    )


def _effects(charts: Charts) -> Iterator[Finding]:
    """Of factors whose levels are words, if series name several factors or charts differ: one factor at one chart is
    the sentence of the series itself. With repeats, that sentence has the claim."""
    comparison = charts.comparison
    if not charts.once or (len(comparison.series_by) == 1 and len(comparison.panels) == 1):
        return
    baseline = levels_of(comparison.baseline)
    keys = {curve: levels_of(_key(charts, curve)) for curve in charts.curves}
    for place, name in enumerate(comparison.series_by):
        levels = list(dict.fromkeys(parts[place] for parts in keys.values()))
        if name in COUNTED or not 2 <= len(levels) <= MOST_LEVELS:
            continue
        first = baseline[place] if baseline[place] in levels else levels[0]
        for level in levels:
            if level != first:
                yield from _effect(charts, keys, place, level, first)


def _effect(
    charts: Charts, keys: Mapping[Curve, Sequence[str]], place: int, level: str, first: str
) -> Iterator[Finding]:
    """`keys`: of each curve, its level of each factor."""
    by_panel: dict[int, list[float]] = {}
    for one, parts in keys.items():
        same = [*parts[:place], first, *parts[place + 1 :]]
        others = [other for other, levels in keys.items() if list(levels) == same and other.panel == one.panel]
        if parts[place] == level and others:
            by_panel.setdefault(one.panel, []).extend(_ratios(one, others[0]).values())
    means = {panel: fmean(ratios) for panel, ratios in by_panel.items() if ratios}
    if not means or max(map(abs, means.values())) < GAIN:
        return
    sign = -1 if charts.metric.lower_is_better else 1
    gains, losses = (any(sign * mean * way >= LOSS for mean in means.values()) for way in (1, -1))
    parts_of = [" ".join(filter(None, (charts.panel_name(p), change(mean)))) for p, mean in means.items()]
    mixed = gains and losses
    yield Finding(
        kind=FindingKind.TRADE_OFF if mixed else FindingKind.EFFECT,
        sentence=(
            f"{level} against {first}: {listed(parts_of)} in {charts.subject} "
            f"({sum(map(len, by_panel.values()))} common points)."
        ),
        single=charts.once,
        size=max(map(abs, means.values())),
        about=f"{charts.comparison.series_by[place]}={level}",
    )


# ---- writes among reads


def _mix_costs(charts: Charts) -> Iterator[Finding]:
    """Charts by pattern: reads alone against reads with writes between them, series by series."""
    panels = {panel.key: index for index, panel in enumerate(charts.comparison.panels)}
    for alone, mixed in _MIXED.items():
        if alone not in panels or mixed not in panels:
            continue
        by_key = {_key(charts, curve): curve for curve in charts.curves if curve.panel == panels[alone]}
        of_mix = [curve for curve in charts.curves if curve.panel == panels[mixed]]
        pairs = [(curve, other) for curve in of_mix if (other := by_key.get(_key(charts, curve)))]
        ratios = [value for one, other in pairs for value in _ratios(one, other).values()]
        if len(ratios) >= FEWEST and fmean(ratios) <= -MIX:
            yield _mix_cost(charts, pairs, ratios)


def _mix_cost(charts: Charts, pairs: Sequence[tuple[Curve, Curve]], ratios: Sequence[float]) -> Finding:
    mixed, alone = (charts.panel_name(curve.panel) for curve in pairs[0])
    lower = sum(each < 0 for each in ratios)
    where = f"all {len(ratios)}" if lower == len(ratios) else f"{lower} of {len(ratios)}"
    sentence = (
        f"{100 * (1 - exp(fmean(ratios))):.0f} % {'fewer' if charts.subject == 'IOPS' else 'less'} {charts.subject} "
        f"than {alone} on average (lower at {where} points, by up to {100 * (1 - exp(min(ratios))):.0f} %)."
    )
    stretches = [(curve, 0, len(curve) - 1) for pair in pairs for curve in pair if len(curve)]
    return charts.finding(FindingKind.MIX_COST, sentence, stretches, size=-fmean(ratios), names=mixed)
