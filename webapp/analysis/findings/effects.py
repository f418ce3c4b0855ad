"""What one level of a factor does against another, chart by chart: reads and writes apart, because their mean describes
neither. A ratio is an effect, a trade-off if another chart has the opposite one, or depends on x; or there is none.

A part is what a sentence says one ratio of: a chart, or a level if x has words. The ratios of its points agree if each
of them is beyond `BEYOND[points]` standard errors: then the chance of a false part is below 0.1 %. The standard
deviation of a single value comes from repeats; without them, `ASSUMED` is a noisy drive. Ratios of values that were
measured once are stated as that: the sentence is about the table.

No effect needs more than small ratios: with repeats, the bound that is stated, `HARDLY` standard errors beyond the
largest mean, is at most `BOUND`. Measured once, two points or more differ by at most `EQUAL`, or most of many by
`ALIKE`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import exp, log, log1p, sqrt

from msgspec import structs

from webapp.analysis.answer import (
    Cell,
    Comparison,
    Conclusion,
    DifferenceKind,
    Finding,
    FindingKind,
    Level,
    Mark,
    Series,
)
from webapp.analysis.cells import levels_of
from webapp.analysis.claims import MIN_BLOCKS, listed
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.findings.curves import ASSUMED, COUNTED, Charts, Curve, change, led, span
from webapp.analysis.words import apart, label_in_sentence
from webapp.plans.engines import CHART_FACTORS

BEYOND = {1: 4.0, 2: 2.8, 3: 2.2, 4: 1.8, 5: 1.7}  # standard errors for each of so many points
OF_MANY = 1.6  # the same, of more points
READS = "read_percent"
LEAST = log1p(0.05)  # a smaller ratio is no effect
HARDLY = 2.5  # standard errors of a mean that chance hardly reaches
OPPOSITE = log1p(0.05)  # a loss in another chart that makes a trade-off
EQUAL, ALIKE, BOUND = log1p(0.02), log1p(0.05), log1p(0.10)
MANY, MOSTLY = 6, 0.9  # points, and the share of them that is alike
WIDE = log(3)  # from the lowest to the highest ratio of a part
MOST_LEVELS, MOST_PARTS, MOST_PAIRS, MOST_LISTED = 6, 6, 6, 3
DEPENDS = log1p(0.30)  # a ratio that changes so much along x
SLACK, BACK = log1p(0.02), 0.1  # steps back that are allowed, and their share of the whole change
ALONG = {4: 4.0, 5: 3.0}  # standard errors between the first and the last of so many levels
ALONG_MANY = 2.5  # the same, of more levels


@dataclass(frozen=True)
class Part:
    """ln(ratio) at each level that both sides have, with the smallest number of values of both."""

    panel: int
    name: str
    levels: tuple[int, ...]  # of x
    ratios: Mapping[int, float]  # by place in `levels`
    errors: Mapping[int, float]  # standard error of each ratio, as a multiple of that of a single value
    is_claimed: bool  # with repeats against the baseline, the page claims each of its differences

    @property
    def mean(self) -> float:
        return sum(self.ratios.values()) / len(self.ratios)

    @property
    def words(self) -> str:
        low, high = min(self.ratios.values()), max(self.ratios.values())
        alike = [ratio for ratio in self.ratios.values() if abs(ratio) <= ALIKE]
        if len(alike) < len(self.ratios) and _is_mostly(alike, self.ratios):
            text = f"within 5 % at {len(alike)} of {len(self.ratios)} points"
        else:
            ends = span(low, high)
            text = ends if self.is_wide or change(low) == change(high) else f"{change(self.mean)} (points: {ends})"
        return f"{self.name} {text}".strip()

    @property
    def is_wide(self) -> bool:
        """Whether a mean describes none of its ratios."""
        return max(self.ratios.values()) - min(self.ratios.values()) > WIDE

    @property
    def inverse(self) -> "Part":
        return replace(self, ratios={level: -ratio for level, ratio in self.ratios.items()})

    def least_mean(self, sigma: float) -> float:
        """The smallest ln of its mean ratio that is hardly chance."""
        error = sqrt(sum(each**2 for each in self.errors.values())) / len(self.errors)
        return max(OPPOSITE, HARDLY * sigma * error)

    def sign(self, sigma: float) -> int:
        """1 or -1 if all its ratios agree, else 0."""
        count = len(self.ratios)
        beyond = BEYOND.get(count, OF_MANY) * sigma
        if not self.is_claimed or not all(
            abs(ratio) >= max(LEAST, beyond * self.errors[level]) for level, ratio in self.ratios.items()
        ):
            return 0
        return (min(self.ratios.values()) > 0) - (max(self.ratios.values()) < 0)


@dataclass(frozen=True)
class Pair:
    """Two levels of one factor, everything else equal."""

    one: str
    other: str
    one_key: str
    other_key: str
    parts: tuple[Part, ...]
    cells: tuple[Cell, ...]  # of both
    series: tuple[tuple[int, int], ...]  # panel and index of the series with the level `one`
    keys: frozenset[str] = frozenset()  # of the series of both; of none for levels of x

    @property
    def faster_first(self) -> "Pair":
        """One ratio far below 1 reads better the other way round."""
        if len(self.parts) > 1 or self.parts[0].mean > -log(2):
            return self
        return replace(self, one=self.other, other=self.one, parts=(self.parts[0].inverse,))

    @property
    def points(self) -> list[float]:
        return [ratio for part in self.parts for ratio in part.ratios.values()]


def _is_mostly(alike: Sequence[float], ratios: Mapping[int, float]) -> bool:
    return len(ratios) >= MANY and len(alike) >= MOSTLY * len(ratios)


def find(charts: Charts) -> Iterator[Finding]:
    yield from _of_one_series(charts)
    yield from _of_words(charts)
    claimed, measured = list[Finding](), list[Finding]()
    equal: dict[str, list[Pair]] = {}
    for pair in _pairs(charts):
        effect = _effect(charts, pair)
        if effects := [effect] if effect else list(_dependent(charts, pair)):
            claimed += effects
        elif _bound(charts, pair) is not None:
            equal.setdefault(pair.other, []).append(pair)
        elif ratios := _as_measured(charts, pair) or _level_by_level(charts, pair):
            measured.append(ratios)
    yield from sorted(claimed, key=lambda finding: -finding.size)[:MOST_PAIRS]
    yield from (_no_effect(charts, pairs) for pairs in equal.values())
    yield from sorted(measured, key=lambda pair: -pair.size)[:MOST_PAIRS]


# ---- pairs of levels


def _pairs(charts: Charts) -> Iterator[Pair]:
    """Each level of a factor with names against that of the baseline; of three levels, also the other pair. Levels of a
    count, such as jobs, are load, and those of a mix would hold reads against writes."""
    comparison = charts.comparison
    keys = list(dict.fromkeys(series.key for panel in comparison.panels for series in panel.series))
    levels = {key: levels_of(key) if len(comparison.series_by) > 1 else [key] for key in keys}
    baseline = levels.get(comparison.baseline, [])
    for place, name in enumerate(comparison.series_by):
        known = [level for level in dict.fromkeys(of_key[place] for of_key in levels.values()) if level]  # stated
        if name in COUNTED or name == READS or not 2 <= len(known) <= MOST_LEVELS:
            continue
        first = baseline[place] if len(baseline) > place and baseline[place] in known else known[0]
        others = [level for level in known if level != first]
        couples = [(level, first) for level in others]
        for level, other in [*couples, *combinations(others, 2)] if len(others) == 2 else couples:
            if pair := _pair(charts, levels, place, level, other):
                yield pair


def _pair(charts: Charts, levels: Mapping[str, Sequence[str]], place: int, one: str, other: str) -> Pair | None:
    by_levels = {tuple(of_key): key for key, of_key in levels.items()}
    matched = {}
    for of_key, key in by_levels.items():
        base = by_levels.get((*of_key[:place], other, *of_key[place + 1 :]))
        if of_key[place] == one and base is not None:
            matched[key] = base
    parts, cells, series = list[Part](), list[Cell](), list[tuple[int, int]]()
    has_words = not any(curve.levels for curve in charts.curves) and charts.comparison.x != MATCHED
    for index, panel in enumerate(charts.comparison.panels):
        cells_by_key = {
            series_of_panel.key: {cell.level: cell for cell in series_of_panel.cells if cell.summary.mean > 0}
            for series_of_panel in panel.series
        }
        couples = [
            (cells_by_key[key][level], cells_by_key[base][level])
            for key, base in matched.items()
            if key in cells_by_key and base in cells_by_key
            for level in sorted(cells_by_key[key].keys() & cells_by_key[base].keys())
        ]
        if not couples:
            continue
        parts += _parts(charts, index, couples, by_level=has_words)
        cells += [cell for couple in couples for cell in couple]
        series += [(index, number) for number, panel_series in enumerate(panel.series) if panel_series.key in matched]
    if not parts or len(parts) > MOST_PARTS:
        return None
    return Pair(
        charts.level_name(one), charts.level_name(other), one, other, tuple(parts), tuple(cells),
        tuple(series), frozenset({*matched.keys(), *matched.values()}),
    )  # fmt: skip


def _parts(charts: Charts, panel: int, couples: Sequence[tuple[Cell, Cell]], *, by_level: bool) -> Iterator[Part]:
    """`by_level`: one for each level, unless there are many."""
    name = charts.panel_name(panel)
    if by_level and len({cell.level for cell, _ in couples}) <= MOST_PARTS:
        for level in dict.fromkeys(cell.level for cell, _ in couples):
            text = charts.comparison.levels[level].text if len(charts.comparison.levels) > 1 else ""
            words = " ".join(filter(None, (name, text)))
            yield part_of(panel, words, [couple for couple in couples if couple[0].level == level])
    else:
        yield part_of(panel, name, couples)


def part_of(panel: int, name: str, couples: Sequence[tuple[Cell, Cell]]) -> Part:
    ratios = {place: log(cell.summary.mean / base_cell.summary.mean) for place, (cell, base_cell) in enumerate(couples)}
    errors = {
        place: sqrt(1 / cell.summary.n + 1 / base_cell.summary.n) for place, (cell, base_cell) in enumerate(couples)
    }
    tested = [cell.against_baseline for cell, _ in couples if cell.against_baseline]
    is_claimed = all(each.n < MIN_BLOCKS or each.better is not None for each in tested)
    return Part(panel, name, tuple(cell.level for cell, _ in couples), ratios, errors, is_claimed)


def _of_one_series(charts: Charts) -> Iterator[Finding]:
    """The two levels of x, if they are words and the chart has one series."""
    if charts.comparison.x in CHART_FACTORS:
        return  # `directions` says what is news of them
    for index, panel in enumerate(charts.comparison.panels):
        cells = [cell for each in panel.series for cell in each.cells if cell.summary.mean > 0]
        if len(panel.series) != 1 or len(cells) != 2 or charts.curves_of(index):
            continue
        low, high = sorted(cells, key=lambda cell: cell.summary.mean)
        part = part_of(index, "", [(high, low)])
        if part.sign(charts.sigma(index)):
            shared, (higher, lower) = apart([charts.comparison.levels[cell.level].text for cell in (high, low)])
            pair = Pair(higher, lower, "", "", (part,), (high, low), ((index, 0),))
            names = " · ".join(filter(None, (charts.panel_name(index), shared)))
            sentence = led(names, showed(charts, higher, lower, part.words))
            yield stated(charts, FindingKind.EFFECT, sentence, pair, part.mean)


def _of_words(charts: Charts) -> Iterator[Finding]:
    """Levels of x that are words, compared over all series as levels of the series are. With repeats, a run asks about
    each factor by itself."""
    made = charts.comparison
    cells = [cell for panel in made.panels for series in panel.series for cell in series.cells]
    if made.x in {MATCHED, *CHART_FACTORS} or any(curve.levels for curve in charts.curves):
        return
    if max((cell.summary.n for cell in cells), default=0) >= MIN_BLOCKS:
        return
    turned = replace(charts, comparison=_turned(charts), curves=(), between=None)
    for pair in _pairs(turned):
        if len(pair.points) > len(pair.parts) and (effect := _effect(turned, pair)):
            marks = (
                Mark(panel=mark.panel, series=series, first=mark.series, last=mark.series)
                for mark in effect.marks
                for series, each in enumerate(made.panels[mark.panel].series)
                if any(cell.level == mark.series for cell in each.cells)
            )
            level = next(place for place, each in enumerate(made.levels) if each.key == pair.one_key)
            yield structs.replace(effect, marks=tuple(marks), level=level)


def _turned(charts: Charts) -> Comparison:
    """The same cells with the levels of x as series, and the series as levels."""
    made, label = charts.comparison, label_in_sentence(charts.comparison.x, charts.comparison.x_label)
    keys = list(dict.fromkeys(series.key for panel in made.panels for series in panel.series))
    panels = []
    for panel in made.panels:
        series = tuple(
            Series(
                key=level.key, name=f"{label} {level.text}", is_baseline=not place, sentence="",
                conclusion=Conclusion.NONE, headline="", against_baseline=None, points=0, order="",
                cells=tuple(
                    structs.replace(cell, level=keys.index(each.key), against_baseline=None)
                    for each in panel.series
                    for cell in each.cells
                    if cell.level == place
                ),
            )
            for place, level in enumerate(made.levels)
        )  # fmt: skip
        panels.append(structs.replace(panel, series=series))
    return structs.replace(
        made, x=MATCHED, series_by=(made.x,), levels=tuple(Level(key, key, None) for key in keys),
        panels=tuple(panels), baseline=made.levels[0].key if made.levels else "",
    )  # fmt: skip


# ---- what they say


def _sigma(charts: Charts, pair: Pair) -> float:
    """Of one measurement. All points of one application of a level share its error, so a few repeats say too little
    about it: they count as one value."""
    sigma = max(charts.sigma(part.panel) for part in pair.parts)
    counts = [cell.summary.n for cell in pair.cells]
    has_few = max(counts) > 1 and min(counts) < MIN_BLOCKS
    return max(sigma, ASSUMED * sqrt(min(counts))) if has_few else sigma


def _effect(charts: Charts, pair: Pair) -> Finding | None:
    signs = {part.sign(_sigma(charts, pair)) for part in pair.parts} - {0}
    if not signs or _is_of_series(pair):
        return None
    means = [part.mean for part in pair.parts]
    sigma = _sigma(charts, pair)
    losses = [part for part in pair.parts for sign in signs if -sign * part.mean >= part.least_mean(sigma)]
    mixed = len(signs) == 2 or bool(losses)
    kind = FindingKind.TRADE_OFF if mixed else FindingKind.EFFECT
    shown = pair.faster_first if charts.metric.is_speed else pair
    sentence = showed(charts, shown.one, shown.other, _words(shown), _points(shown), several=len(shown.parts) > 1)
    return stated(charts, kind, sentence, pair, max(map(abs, means)))


def _is_of_series(pair: Pair) -> bool:
    """Whether sentences of series say it with their claims: repeats, and one ratio in each chart."""
    has_repeats = min(cell.summary.n for cell in pair.cells) >= MIN_BLOCKS
    is_one_each = len(pair.parts) == len({part.panel for part in pair.parts})
    return has_repeats and is_one_each


def _words(pair: Pair) -> str:
    return ", ".join(part.words for part in pair.parts)


def _points(pair: Pair) -> str:
    return f" ({len(pair.points)} common points)" if len(pair.points) > len(pair.parts) else ""


def _dependent(charts: Charts, pair: Pair) -> Iterator[Finding]:
    """Ratios that go one way along x: two curves that part."""
    for part in pair.parts:
        places = [(panel, series) for panel, series in pair.series if panel == part.panel]
        curves = [curve for curve in charts.curves_of(part.panel) if (curve.panel, curve.series) in places]
        if len(curves) == 1 and len(places) == 1:
            yield from _along(charts, pair, part, curves[0])


def _along(charts: Charts, pair: Pair, part: Part, curve: Curve) -> Iterator[Finding]:
    order = [part.levels.index(level) for level in curve.levels if level in part.levels]
    ratios = [part.ratios[place] for place in order]
    if len(ratios) < max(min(ALONG), len(part.levels)):
        return
    total = ratios[-1] - ratios[0]
    steps = [(after - before) * (1 if total > 0 else -1) for before, after in pairwise(ratios)]
    ends = sqrt(part.errors[order[0]] ** 2 + part.errors[order[-1]] ** 2)
    beyond = ALONG.get(len(ratios), ALONG_MANY) * _sigma(charts, pair) * ends
    if abs(total) < max(DEPENDS, beyond) or min(steps) < -max(SLACK, BACK * abs(total)):
        return
    first, last = (charts.at(part.levels[place]) for place in (order[0], order[-1]))
    sentence = (
        f"{charts.label} of {pair.one} against {pair.other} depend{charts.verb_s} on {charts.x_subject}: "
        f"{change(ratios[0])} at {first}, {change(ratios[-1])} at {last}."
    )
    pair_of_curve = replace(pair, parts=(part,), series=((curve.panel, curve.series),))
    yield stated(charts, FindingKind.INTERACTION, led(part.name, sentence), pair_of_curve, abs(total))


def _bound(charts: Charts, pair: Pair) -> float | None:
    """The largest difference that is left possible; None if it may be larger than that of an effect."""
    if charts.metric.shown_as == "entered" or _is_of_series(pair):
        return None
    sizes = [abs(ratio) for ratio in pair.points]
    noises = [charts.noises[part.panel] for part in pair.parts]
    if is_known := all(noise and noise.of_repeats for noise in noises):
        sigma = _sigma(charts, pair)
        bound = max(
            abs(part.mean) + HARDLY * sigma * sqrt(sum(each**2 for each in part.errors.values())) / len(part.errors)
            for part in pair.parts
        )
        if bound <= BOUND and max(sizes) <= BOUND:
            return bound
    if max(cell.summary.n for cell in pair.cells) > 1:
        return None  # the range of a few means is no bound
    if len(sizes) >= 2 and max(sizes) <= EQUAL:
        return max(sizes)
    has_many = all(len(part.ratios) >= MANY for part in pair.parts)
    return max(sizes) if has_many and not is_known and max(sizes) <= ALIKE else None


def _as_measured(charts: Charts, pair: Pair) -> Finding | None:
    """Ratios that are too small for so few values, part by part: their mean would describe none of them."""
    sizes = [part.mean for part in pair.parts]
    has_sentence = len(pair.parts) == 1 and charts.comparison.baseline in (pair.one_key, pair.other_key)
    if min(cell.summary.n for cell in pair.cells) >= MIN_BLOCKS or has_sentence or max(map(abs, sizes)) < OPPOSITE:
        return None
    if all(part.is_wide for part in pair.parts) or (len(sizes) > 1 and max(sizes) - min(sizes) < OPPOSITE):
        return None
    sentence = showed(charts, pair.one, pair.other, _words(pair), _points(pair), several=len(pair.parts) > 1)
    return stated(charts, FindingKind.RATIOS, sentence, pair, max(map(abs, sizes)))


def _level_by_level(charts: Charts, pair: Pair) -> Finding | None:
    """As measured, of two or three levels of x whose ratios do not overlap. At each level, all of them are above 1, or
    below, or near it."""
    by_level: dict[int, list[float]] = {}
    for part in pair.parts:
        for place, ratio in part.ratios.items():
            by_level.setdefault(part.levels[place], []).append(ratio)
    if min(cell.summary.n for cell in pair.cells) >= MIN_BLOCKS or not 2 <= len(by_level) <= MOST_LISTED:
        return None
    ranges = sorted((min(ratios), max(ratios)) for ratios in by_level.values())
    if len(pair.points) <= len(by_level) or any(low - high < OPPOSITE for (_, high), (low, _) in pairwise(ranges)):
        return None
    if any(low < -EQUAL and high > EQUAL for low, high in ranges):
        return None
    words = [f"{_range(by_level[level])} at {charts.at(level)}" for level in sorted(by_level)]
    sentence = showed(charts, pair.one, pair.other, ", ".join(words), several=True)
    return stated(charts, FindingKind.RATIOS, sentence, pair, max(map(abs, pair.points)))


def _range(ratios: Sequence[float]) -> str:
    if max(map(abs, ratios)) <= EQUAL:
        return f"within {100 * (exp(max(map(abs, ratios))) - 1):.1f} %"
    return span(min(ratios), max(ratios))


def _no_effect(charts: Charts, pairs: Sequence[Pair]) -> Finding:
    bounds = [bound for pair in pairs if (bound := _bound(charts, pair)) is not None]
    names, bound = listed([pair.one for pair in pairs]), max(bounds)
    parts = f" ({_words(pairs[0])})" if len(pairs) == 1 else ""
    largest = max(abs(ratio) for pair in pairs for ratio in pair.points)
    size, other = f"{100 * (exp(bound) - 1):.1f} %", pairs[0].other
    result = f"showed no difference beyond {size} from" if bound > largest else f"stayed within {size} of"
    sentence = f"{names} {result} {other} in {charts.subject}{parts}."
    together = Pair(
        "", "", "", "", pairs[0].parts, tuple(cell for pair in pairs for cell in pair.cells),
        tuple(each for pair in pairs for each in pair.series), frozenset().union(*(pair.keys for pair in pairs)),
    )  # fmt: skip
    return stated(charts, FindingKind.NO_EFFECT, sentence, together, bound)


def showed(charts: Charts, level: str, base_level: str, words: str, points: str = "", *, several: bool = False) -> str:
    """`write showed ×3.00 in IOPS against read.` Of several ratios, each with its name:
    `on showed in IOPS against off: read ×3.00, write −2.0 % (12 common points).`"""
    if several:
        return f"{level} showed in {charts.subject} against {base_level}: {words}{points}."
    return f"{level} showed {words} in {charts.subject} against {base_level}{points}."


def stated(charts: Charts, kind: FindingKind, sentence: str, pair: Pair, size: float) -> Finding:
    levels = [cell.level for cell in pair.cells]
    marks = tuple(
        Mark(panel=panel, series=series, first=min(levels), last=max(levels)) for panel, series in pair.series
    )
    sentence = f"{sentence[:-1]}{_confounded(charts, pair.keys) if kind in _OF_FACTORS else ''}."
    about = f"{charts.metric.key}: {pair.one} against {pair.other}"
    return charts.stated(kind, sentence, [cell.summary.n for cell in pair.cells], marks, size=size, about=about)


# A factor has these, so whatever else differs may be their cause.
_OF_FACTORS = (
    FindingKind.EFFECT, FindingKind.TRADE_OFF, FindingKind.RATIOS, FindingKind.INTERACTION, FindingKind.NO_EFFECT,
)  # fmt: skip


def _confounded(charts: Charts, keys: frozenset[str]) -> str:
    """Between these series: `; controller and firmware differ, too`"""
    confounded = [difference for difference in charts.differ(keys) if difference.kind is DifferenceKind.CONFOUNDED]
    labels = list(dict.fromkeys(label_in_sentence(difference.name, difference.label) for difference in confounded))
    if not labels or not charts.comparison.series_by:
        return ""
    return f"; {listed(labels)} differ{'s' if len(labels) == 1 else ''}, too"
