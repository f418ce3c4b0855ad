"""Findings as pages show them: with the address of their evidence, and a small chart in which it is marked. The most
important one is the heading of its page."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from django.urls import reverse
from msgspec import structs

from webapp.analysis.answer import CeilingMatch, FindingKind
from webapp.analysis.evidence import TIME, Line, Picture, RunFinding
from webapp.analysis.import_findings import ImportFinding
from webapp.analysis.reviews import Reviewed, reviewed
from webapp.analysis.run_answer import run_answer
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import apart
from webapp.core.formatting import ratio as as_ratio
from webapp.pictures.elements import colours_of
from webapp.results.metrics import METRICS
from webapp.runs.models import Run

FIRST = 2  # shown side by side; the others are folded
MOST_LETTERS_OF_HEADING = 160
MOST_LETTERS_WITH_NAMES = 90  # of a heading that begins with the names of its series

# The area of the lines; names of values and levels are outside of it. In pixels.
WIDTH, HEIGHT = 180.0, 64.0
LEFT, RIGHT, ABOVE, BELOW = 8.0, 8.0, 16.0, 16.0
MOST_LETTERS = 28  # below the lines
WIDE_RANGE = 20.0  # highest / lowest, from which the axis is logarithmic
LEAST_RANGE = math.log(1.1)  # of an axis of ratios
MOST_BARS, BAR_PITCH = 4, 20.0  # instead of lines, if the levels have no order
MOST_NAME = 22  # letters above a bar
MOST_NAMED = 4  # lines in a legend


@dataclass(frozen=True)
class DrawnLine:
    """`path` has all points, `evidence` the marked ones; both as the points of a polyline, or "" if the levels have no
    order."""

    name: str
    colour: int | None  # its number; None (grey) if it is no evidence
    path: str
    evidence: str
    dots: tuple[tuple[str, str], ...]  # x and y of the marked points, or of all if nothing connects them


@dataclass(frozen=True)
class DrawnBar:
    """A value at one level, with its name and text above it. Ratios begin in the middle, at 1."""

    name: str
    text: str
    colour: int | None  # None (grey) for what the evidence is compared with
    y: str  # of the name; the bar is below it
    x: str
    width: str


@dataclass(frozen=True)
class DrawnBand:
    """A known ceiling: from its practical rate to its limit."""

    name: str
    y: str  # of its upper edge
    height: str


@dataclass(frozen=True)
class SmallChart:
    width: float
    height: float
    lines: tuple[DrawnLine, ...]  # the evidence last, above the others
    baseline: str  # y of the ratio 1; "" for values
    highest: str  # value, or the range of ratios, above the lines
    first: str  # the lowest level of x, or how many levels there are
    x_label: str
    last: str
    words: str  # the same for those who do not see it
    bands: tuple[DrawnBand, ...] = ()
    bars: tuple[DrawnBar, ...] = ()  # instead of lines
    legend: tuple[tuple[str, int], ...] = ()  # names and colours, of a few lines
    note: str = ""  # log axis · a line a trial


@dataclass(frozen=True)
class ShownFinding(Generic[Reviewed]):
    finding: Reviewed
    url: str  # of its evidence
    review_url: str
    chart: SmallChart | None
    text: str  # the sentence without its doubt; "" if the chart says what the heading does not
    doubt: str  # `may be drift`, without the reason


@dataclass(frozen=True)
class FindingList:
    """Of a run: the first ones, the others, and those that somebody dismissed."""

    first: tuple[ShownFinding[RunFinding], ...]
    more: tuple[ShownFinding[RunFinding], ...]
    dismissed: tuple[ShownFinding[RunFinding], ...]


def findings_of_run(run: Run) -> FindingList:
    return finding_list(reviewed(run, run_answer(run).findings))


def finding_list(findings: Iterable[RunFinding]) -> FindingList:
    shown = [shown_finding(each) for each in findings]
    valid = [each for each in shown if not each.finding.is_dismissed]
    dismissed = tuple(each for each in shown if each.finding.is_dismissed)
    others = [each for each in valid[1:] if each.finding.kind is not FindingKind.UNCERTAIN]
    first = [*valid[:1], *others][:FIRST]
    return FindingList(tuple(first), tuple(each for each in valid if each not in first), dismissed)


def shown_finding(finding: Reviewed) -> ShownFinding[Reviewed]:
    chart = small_chart(finding.picture) if finding.picture else None
    if isinstance(finding, RunFinding):
        review_url = reverse("review_finding", args=[finding.run, finding.key])
    else:
        review_url = reverse("review_import_finding", args=[finding.imported, finding.key])
    text = finding.sentence.removesuffix(f" This {finding.doubt}.")
    return ShownFinding(finding, address(finding), review_url, chart, text, finding.doubt.partition(":")[0])


def as_heading(claim: str) -> str:
    """Its first line, cut after a word."""
    line = claim.split("\n")[0]
    return line if len(line) <= MOST_LETTERS_OF_HEADING else f"{line[:MOST_LETTERS_OF_HEADING].rsplit(' ', 1)[0]} …"


def names_apart(claim: str) -> tuple[str, str]:
    """The names of series before a long claim and the claim without them: `read: Re-read` and `Bandwidth falls …`. The
    names of a short claim stay in it."""
    if len(claim) > MOST_LETTERS_WITH_NAMES:
        for label in (metric.label for metric in METRICS.values()):
            names, _, rest = claim.partition(f": {label} ")
            if rest:
                return names, f"{label} {rest}"
    return "", claim


def below_heading(first: Sequence[ShownFinding[Reviewed]], heading: str) -> tuple[ShownFinding[Reviewed], ...]:
    """The first finding without what stands above it, its sentence and its doubt: `IOPS: 95 % CI ×1.94 to ×2.10`."""
    return tuple(
        replace(shown, text=_rest(shown), doubt="") if place == 0 and shown.finding.claim == heading else shown
        for place, shown in enumerate(first)
    )


def _rest(shown: ShownFinding[Reviewed]) -> str:
    """The interval of a finding. Without one, its chart says what it is about."""
    picture, certainty = shown.finding.picture, shown.finding.certainty
    if certainty:
        return f"{picture.metric_label if picture else 'The finding above'}: {certainty}"
    return "" if shown.chart else "Open the charts"


def address(finding: RunFinding | ImportFinding) -> str:
    """Of the page that has the evidence: the trial that shows it best, or the charts."""
    if isinstance(finding, RunFinding) and finding.seconds:
        return reverse("trial", args=[finding.run, finding.seconds[0].trial])
    return f"{reverse('explore')}?{finding.query}"


def small_chart(picture: Picture) -> SmallChart | None:
    """Lines along x. Levels without an order have bars, or dots if there are too many for bars. None without a line,
    two marks or two bars to draw."""
    values = [value for line in picture.lines for value in line.values if value is not None]
    positive = [value for value in values if value > 0]
    if len(positive) < 2:
        return None
    if not picture.ordered:
        bars = _bar_values(picture)
        if len(bars) < 2 or min(value for *_, value in bars) <= 0:
            return None
        if len(bars) <= MOST_BARS:
            return _bar_chart(picture, bars)
        picture = _evidence_only(picture, sorted({level for _, level, _ in bars}))
        if len(picture.levels) < 2:
            return None
    axis = _axis([*positive, *(each.high for each in picture.ceilings)], ratios=picture.ratios)
    first, last = picture.levels[0], picture.levels[-1]
    fits = picture.ordered and len(first) + len(picture.x_label) + len(last) <= MOST_LETTERS
    colours = colours_of(line.name for line in picture.lines)
    drawn = [_drawn(line, colours[line.name], axis, connected=picture.ordered) for line in picture.lines]
    if sum(len(line.dots) for line in drawn) < 2 and not any(" " in line.path for line in drawn):
        return None
    legend = _legend(picture, drawn)
    return SmallChart(
        width=LEFT + WIDTH + RIGHT,
        height=ABOVE + HEIGHT + BELOW,
        lines=tuple(sorted(drawn, key=lambda line: line.colour is not None)),
        baseline=f"{axis.y(1.0):.1f}" if picture.ratios else "",
        highest=_range(picture, values),
        first=first if fits else f"{len(picture.levels)} points",
        x_label=picture.x_label if fits else "",
        last=last if fits else "",
        words="; ".join([*_words(picture), *(f"matches {each.name}" for each in picture.ceilings)]),
        bands=tuple(_band(each, axis) for each in picture.ceilings),
        legend=legend,
        note=" · ".join(_notes(picture, drawn, axis, has_legend=bool(legend))),
    )


def _legend(picture: Picture, drawn: Sequence[DrawnLine]) -> tuple[tuple[str, int], ...]:
    """Of the evidence. Trials of one point over time need no names."""
    named = [(line.name, line.colour) for line in drawn if line.colour is not None and line.name]
    if picture.x_label == TIME or not 1 < len(named) <= MOST_NAMED:
        return ()
    short = _short_names([name for name, _ in named])
    return tuple((short[name], colour) for name, colour in named)


def _notes(picture: Picture, drawn: Sequence[DrawnLine], axis: "_Axis", *, has_legend: bool) -> Iterator[str]:
    if axis.logarithmic:
        yield "log axis"
    marks = "line" if picture.ordered else "colour"
    if len(drawn) > 1 and picture.x_label == TIME:
        yield "a line a trial"
    elif len(drawn) > 1 and all(line.colour is not None for line in drawn) and not has_legend:
        yield f"a {marks} a series"
    elif len(drawn) > 1 and any(line.colour is None for line in drawn):
        yield "grey: other series"


def _bar_values(picture: Picture) -> list[tuple[Line, int, float]]:
    """The evidence, and the values beside it at the same levels. Of several lines, where there is more than one."""
    counts = Counter(level for line in picture.lines for level, value in enumerate(line.values) if value is not None)
    least = 1 if picture.ratios else min(2, len(picture.lines))
    evidence = {level for line in picture.lines for level in _marked(line) if counts[level] >= least}
    values = [
        (line, level, value)
        for level in sorted(evidence)
        for line in picture.lines
        if (value := line.values[level]) is not None and (level in _marked(line) or not picture.ratios)
    ]
    marked = [(line, level, value) for line, level, value in values if level in _marked(line)]
    is_compared = len({line.name for line, *_ in marked}) > 1
    return marked if len(values) > MOST_BARS >= len(marked) and is_compared else values


def _evidence_only(picture: Picture, levels: Sequence[int]) -> Picture:
    """These levels, for dots: of marked lines the evidence, of the others all values."""
    lines = []
    for line in picture.lines:
        marked = _marked(line)
        values = tuple(line.values[level] if not marked or level in marked else None for level in levels)
        ends = (0, len(levels) - 1) if marked else (None, None)
        lines.append(Line(name=line.name, values=values, first=ends[0], last=ends[1]))
    return structs.replace(picture, levels=tuple(picture.levels[level] for level in levels), lines=tuple(lines))


def _bar_chart(picture: Picture, shown: Sequence[tuple[Line, int, float]]) -> SmallChart:
    values = [value for *_, value in shown]
    evidence = sorted({level for _, level, _ in shown})
    several = len({line.name for line, *_ in shown}) > 1, len(evidence) > 1
    names = _short_names([line.name for line, *_ in shown])
    colours = colours_of(line.name for line in picture.lines)
    reach = max(LEAST_RANGE, *(abs(math.log(value)) for value in values))
    bars, texts = [], dict(zip(evidence, apart([picture.levels[level] for level in evidence])[1], strict=True))
    for place, (line, level, value) in enumerate(shown):
        parts = [part for part, differs in zip((names[line.name], texts[level]), several, strict=True) if differs]
        start, end = 0.0, WIDTH * value / max(values)
        if picture.ratios:
            start, end = sorted((WIDTH / 2, WIDTH / 2 * (1 + math.log(value) / reach)))
        bars.append(
            DrawnBar(
                name=_short(", ".join(filter(None, parts))), text=_text(picture, value),
                colour=colours[line.name] if level in _marked(line) else None,
                y=f"{ABOVE + 9 + place * BAR_PITCH:.1f}", x=f"{LEFT + start:.1f}", width=f"{max(end - start, 1):.1f}",
            )
        )  # fmt: skip
    ratio = f": {as_ratio(max(values) / min(values))}" if len(shown) == 2 and not picture.ratios else ""
    return SmallChart(
        width=LEFT + WIDTH + RIGHT, height=ABOVE + HEIGHT + BELOW, lines=(), baseline="",
        highest=f"{picture.metric_label}{ratio}", first="", x_label="", last="", words="; ".join(_words(picture)),
        bars=tuple(bars),
    )  # fmt: skip


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """By name `chart: series`: the part that differs, or the name if both do."""
    charts, series = ({part[place] for part in (name.partition(": ") for name in names)} for place in (0, 2))
    place = 0 if len(series) == 1 else 2 if len(charts) == 1 else None
    return {name: name if place is None else name.partition(": ")[place] or name for name in names}


def _short(name: str) -> str:
    """Its begin and end: a chart, and the last part of a level."""
    half = MOST_NAME // 2
    return name if len(name) <= MOST_NAME else f"{name[:half]}…{name[-half:]}"


def _marked(line: Line) -> range:
    """The levels that are evidence."""
    return range(0) if line.first is None or line.last is None else range(line.first, line.last + 1)


def _band(ceiling: CeilingMatch, axis: "_Axis") -> DrawnBand:
    top, bottom = axis.y(ceiling.high), axis.y(ceiling.low)
    return DrawnBand(ceiling.name, f"{top:.1f}", f"{bottom - top:.1f}")


@dataclass(frozen=True)
class _Axis:
    """Of values, from `low` at the bottom to `high`."""

    low: float
    high: float
    logarithmic: bool

    def y(self, value: float) -> float:
        """A zero is at the bottom of a logarithmic axis."""
        shown = max(value, self.low)
        low, high, at = (
            map(math.log, (self.low, self.high, shown)) if self.logarithmic else (self.low, self.high, shown)
        )
        return ABOVE + HEIGHT * (1 - (at - low) / (high - low))


def _axis(values: Sequence[float], *, ratios: bool) -> _Axis:
    """Ratios have 1 in the middle; values begin at zero, unless they are far apart."""
    low, high = min(values), max(values)
    if ratios:
        reach = max(abs(math.log(low)), abs(math.log(high)), LEAST_RANGE)
        return _Axis(math.exp(-reach), math.exp(reach), logarithmic=True)
    return _Axis(low / 1.2, high, logarithmic=True) if high > WIDE_RANGE * low else _Axis(0.0, high, logarithmic=False)


def _drawn(line: Line, colour: int, axis: _Axis, *, connected: bool) -> DrawnLine:
    """Without a connection, all points are dots."""
    step = WIDTH / (len(line.values) - 1)
    points = {
        level: (f"{LEFT + level * step:.1f}", f"{axis.y(value):.1f}")
        for level, value in enumerate(line.values)
        if value is not None
    }
    marked = _marked(line)
    evidence = [point for level, point in points.items() if level in marked]
    return DrawnLine(
        name=line.name,
        colour=colour if marked else None,
        path=" ".join(map(",".join, points.values())) if connected else "",
        evidence=" ".join(map(",".join, evidence)) if connected else "",
        dots=tuple(evidence if connected else points.values()),
    )


def _words(picture: Picture) -> Iterator[str]:
    """`IOPS, Jobs: 1 458, 2 919, 4 1.82k`"""
    for line in picture.lines:
        pairs = zip(picture.levels, line.values, strict=True)
        values = ", ".join(f"{level}: {_text(picture, value)}" for level, value in pairs if value is not None)
        yield f"{line.name or picture.metric_label} over {picture.x_label} ({values})"


def _range(picture: Picture, values: Sequence[float]) -> str:
    """Ratios are those of the points: the sentence may state the interval of their mean."""
    low, high = (_text(picture, value) for value in (min(values), max(values)))
    if picture.ratios and low != high:
        return f"{picture.metric_label}, points: {low} to {high}"
    return f"{picture.metric_label}: up to {high}"


def _text(picture: Picture, value: float) -> str:
    return as_ratio(value) if picture.ratios else metric_named(picture.metric).format(value)
