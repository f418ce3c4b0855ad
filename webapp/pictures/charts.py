"""One chart of a picture: axes, series, and lines that are no series. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from statistics import median, quantiles
from typing import Literal
from xml.etree.ElementTree import Element

from webapp.pictures.axes import Axis
from webapp.pictures.elements import (
    CHARACTER,
    GRID,
    LINE,
    MUTED,
    area,
    colour_of,
    element,
    mark,
    path,
    px,
    shape_of,
    text_at,
    whisker,
    width_of,
)

WIDTH, HEIGHT = 760, 260  # of the area of one chart, in pixels
LEFT, RIGHT, ABOVE, BELOW = 84, 16, 8, 44  # room for the names of values and levels
SHEET = LEFT + WIDTH + RIGHT
SHORT = 18  # half the width of a line with one level, and of the widest box
DASHED, DOTTED = "6 4", "2 3"
GAP = "4 4"  # of a line over levels without a value
LEAST_BAND = 6.0  # px: a limit with a name stays visible
DIAGONAL_ROOM = 1.06  # beside a diagonal limit
MIN_REPEATS_OF_BOX = 5  # a box of fewer repeats would show quartiles that are only guesses
HALF_VIOLIN = 0.42  # of the place of a level
DIAMOND = 3  # the marker of a line with a colour of its own

Slices = Sequence[tuple[float, float, float]]  # lower end, upper end, share


class Kind(StrEnum):
    """How a chart draws series."""

    LINES = "lines"
    CURVES = "curves"  # lines without marks
    STEPS = "steps"  # of cumulative shares: upwards at each value
    BARS = "bars"
    BOXES = "boxes"
    VIOLINS = "violins"


WITHOUT_MARKS = (Kind.CURVES, Kind.STEPS)


@dataclass(frozen=True)
class Mark:
    """`y` is None for a gap in the line."""

    x: float
    y: float | None
    low: float | None = None  # the ends of a whisker
    high: float | None = None
    repeats: tuple[float, ...] = ()  # drawn as a box
    hollow: bool = False  # doubtful
    after_gap: bool = False  # levels before it have no value: the line to it is dashed
    text: str = ""  # beside the mark


@dataclass(frozen=True)
class Line:
    """A series, or a part of one: only the first line of a name is in the legend."""

    name: str
    colour: int | str  # its number, or a colour of SVG
    marks: tuple[Mark, ...]
    width: float = 2
    dash: str = ""
    opacity: str = "1"
    slices: Slices = ()  # of a violin; its mark is the median, the whisker ends at the p99

    @property
    def paint(self) -> str:
        return colour_of(self.colour) if isinstance(self.colour, int) else self.colour


@dataclass(frozen=True)
class Band:
    """A limit, or a shaded part of x. `product` is x times y: a diagonal where both axes are logarithmic."""

    along: Literal["x", "y", "product"]
    low: float
    high: float
    text: str = ""


@dataclass(frozen=True)
class Upright:
    """A line at a place on x, with a text."""

    x: float
    text: str
    colour: str


@dataclass(frozen=True)
class Chart:
    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    kind: Kind = Kind.LINES
    extra: tuple[Line, ...] = ()  # ceilings and references; without marks, only in the legend
    bands: tuple[Band, ...] = ()
    uprights: tuple[Upright, ...] = ()
    has_legend: bool = False  # of its own, because its colours mean something else than those of other charts


@dataclass(frozen=True)
class Piece:
    """A part of a picture, in pixels."""

    parts: tuple[Element, ...]
    width: float
    height: float


@dataclass(frozen=True)
class Box:
    median: float
    lower: float  # quartiles
    upper: float
    low: float  # whiskers
    high: float


def box_of(values: Sequence[float]) -> Box:
    """Quartiles between the two nearest values (type 7 of Hyndman and Fan 1996); whiskers to the last value within 1.5
    times the height of the box (Tukey 1977)."""
    lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    reach = 1.5 * (upper - lower)
    inside = [value for value in values if lower - reach <= value <= upper + reach]
    return Box(median(values), lower, upper, min(inside), max(inside))


def chart_piece(chart: Chart) -> Piece:
    """With its title; as wide as all charts."""
    parts, top = list[Element](), float(ABOVE)
    if chart.title:
        parts.append(text_at(12, 12, chart.title, size=13, weight=600))
        top += LINE
    if chart.has_legend:
        legend, height = legend_of([chart])
        parts.append(element("g", *legend, transform=f"translate(0 {px(top - 14)})"))
        top += height
    top += LINE if any(upright.text for upright in chart.uprights) else 0
    rows = _rows(chart.x)
    parts.append(element("g", *_chart(chart, rows), transform=f"translate({LEFT} {px(top)})"))
    return Piece(tuple(parts), SHEET, top + HEIGHT + BELOW + max(rows, default=0) * LINE + 4)


def legend_of(charts: Sequence[Chart]) -> tuple[list[Element], float]:
    """Each series once, in rows; and the height."""
    without_marks = {line.name for chart in charts if chart.kind in WITHOUT_MARKS for line in chart.lines}
    entries = [
        element("g", *_entry(line, is_marked=line.name not in without_marks), transform=f"translate({px(x)} {px(y)})")
        for line, x, y in placed_names(charts)
    ]
    return entries, max((y for *_, y in placed_names(charts)), default=0.0)


def placed_names(charts: Sequence[Chart]) -> list[tuple[Line, float, float]]:
    """Each series once: px from the left to its mark, and down to the base line of its name."""
    lines = [*(line for chart in charts for line in chart.lines), *(line for chart in charts for line in chart.extra)]
    named = {line.name: line for line in reversed(lines) if line.name}
    placed, left, top = list[tuple[Line, float, float]](), 12.0, float(LINE + 2)
    for line in (named[name] for name in dict.fromkeys(line.name for line in lines) if name):
        width = 20 + width_of(line.name) + 16
        if left > 12 and left + width > SHEET:
            left, top = 12.0, top + LINE
        placed.append((line, left, top))
        left += width
    return placed


def _entry(line: Line, *, is_marked: bool) -> Iterator[Element]:
    if line.dash or not is_marked:
        yield path("M0-4h14", line.paint, line.width, line.dash)
    else:
        yield mark(shape_of(line.colour if isinstance(line.colour, int) else DIAMOND), 6, -4, line.paint)
    yield text_at(20, 0, line.name)


def across(chart: Chart, value: float) -> float:
    """Px from the left of the chart's area."""
    return chart.x.at(value, 0, WIDTH)


def down(chart: Chart, value: float) -> float:
    """Px from the top of the chart's area."""
    return chart.y.at(value, HEIGHT, 0)


def _chart(chart: Chart, rows: Sequence[int]) -> Iterator[Element]:
    for band in chart.bands:
        yield from _band(chart, band)
    yield from _axes(chart, rows)
    for line in chart.extra:
        yield from _extra(chart, line)
    for index, line in enumerate(chart.lines):
        match chart.kind:
            case Kind.BARS:
                yield from _bars(chart, line, index)
            case Kind.BOXES:
                yield from _boxes(chart, line, index)
            case Kind.VIOLINS:
                yield from _violin(chart, line)
            case _:
                yield from _curve(chart, line)
    yield from _texts(chart)
    for number, upright in enumerate(chart.uprights):
        x = across(chart, upright.x)
        yield path(f"M{px(x)} 0V{HEIGHT}", upright.colour, 1, DASHED)
        if upright.text:
            side = "end" if x > WIDTH - CHARACTER * len(upright.text) else "start"
            top = -6 if number % 2 else 12
            yield text_at(x + (-4 if side == "end" else 4), top, upright.text, size=11, weight=600, anchor=side)


def _rows(axis: Axis) -> list[int]:
    """The row of each tick's text: texts that would overlap stand on rows of their own, so that none is left out."""
    ends: list[float] = []
    rows = []
    for value, text in axis.ticks:
        half = len(text) * CHARACTER / 2
        x = axis.at(value, 0, WIDTH)
        row = next((row for row, end in enumerate(ends) if x - half > end), len(ends))
        ends[row:] = [x + half + 6, *ends[row + 1 :]]
        rows.append(row)
    return rows


def _axes(chart: Chart, rows: Sequence[int]) -> Iterator[Element]:
    for value, text in chart.y.ticks:
        y = down(chart, value)
        yield path(f"M0 {px(y)}H{WIDTH}", GRID)
        yield text_at(-8, y + 4, text, anchor="end", fill=MUTED)
    for (value, text), row in zip(chart.x.ticks, rows, strict=True):
        x = min(across(chart, value), WIDTH + RIGHT - len(text) * CHARACTER / 2)
        yield text_at(x, HEIGHT + 16 + row * LINE, text, anchor="middle", fill=MUTED)
    yield path(f"M0 0V{HEIGHT}H{WIDTH}", MUTED)
    below = HEIGHT + 34 + max(rows, default=0) * LINE
    yield text_at(WIDTH / 2, below, chart.x.label, anchor="middle", fill=MUTED)
    label = text_at(0, 0, chart.y.label, anchor="middle", fill=MUTED)
    yield element("g", label, transform=f"translate({14 - LEFT} {HEIGHT // 2}) rotate(-90)")


def _band(chart: Chart, band: Band) -> Iterator[Element]:
    if band.along == "product":
        ends = (chart.x.low, chart.x.high)
        corners = [(x, band.low / x / DIAGONAL_ROOM) for x in ends]
        corners += [(x, band.high / x * DIAGONAL_ROOM) for x in reversed(ends)]
        places = [(across(chart, x), down(chart, y)) for x, y in corners]
        yield area("M" + "L".join(f"{px(x)} {px(y)}" for x, y in places) + "Z", MUTED, "0.16")
        yield text_at(places[2][0] - 8, max(12.0, places[2][1] - 6), band.text, size=11, anchor="end", fill=MUTED)
        return
    place = across if band.along == "x" else down
    low, high = sorted((place(chart, band.low), place(chart, band.high)))
    room = max(0.0, LEAST_BAND - (high - low)) / 2 if band.text else 0.0
    low, long = low - room, high - low + 2 * room
    if band.along == "x":
        yield area(f"M{px(low)} 0h{px(long)}V{HEIGHT}h-{px(long)}Z", MUTED, "0.16")
        yield text_at(low - 4, 12, band.text, size=11, anchor="end", fill=MUTED)
    else:
        yield area(f"M0 {px(low)}H{WIDTH}v{px(long)}H0Z", MUTED, "0.16")
        yield text_at(8, low - 5 if low > 16 else low + long + 14, band.text, size=11, fill=MUTED)


def _extra(chart: Chart, line: Line) -> Iterator[Element]:
    """A single mark is a short line."""
    known = [each for each in line.marks if each.y is not None]
    if len(known) == 1:
        x, y = across(chart, known[0].x), down(chart, known[0].y or 0.0)
        yield path(f"M{px(x - SHORT)} {px(y)}h{2 * SHORT}", line.paint, 1.5, line.dash or DASHED)
    elif known:
        steps = (
            f"{'L' if number and line.marks[number - 1].y is not None else 'M'}"
            f"{px(across(chart, each.x))} {px(down(chart, each.y))}"
            for number, each in enumerate(line.marks)
            if each.y is not None
        )
        yield path("".join(steps), line.paint, 1.5, line.dash or DASHED)


def _curve(chart: Chart, line: Line) -> Iterator[Element]:
    """The line, then whiskers and marks over it. Without marks, points that no line joins are dots."""
    solid, dashed, alone = list[str](), list[str](), list[Mark]()
    before: Mark | None = None
    for each, after in zip_longest(line.marks, line.marks[1:]):
        if each.y is None:
            before = None
            continue
        place = f"{px(across(chart, each.x))} {px(down(chart, each.y))}"
        if before is None or before.y is None or each.after_gap:
            if before is not None and before.y is not None:
                dashed.append(f"M{px(across(chart, before.x))} {px(down(chart, before.y))}L{place}")
            solid.append(f"M{place}")
            if after is None or after.y is None or after.after_gap:
                alone.append(each)
        else:
            solid.append(f"{f'H{px(across(chart, each.x))}' if chart.kind is Kind.STEPS else ''}L{place}")
        before = each
    for steps, dash in ((solid, line.dash), (dashed, GAP)):
        if steps and line.width:
            drawn = path("".join(steps), line.paint, line.width, dash)
            if line.opacity != "1":
                drawn.set("stroke-opacity", line.opacity)
            yield drawn
    if chart.kind in WITHOUT_MARKS:
        for each in alone:
            yield element("circle", cx=across(chart, each.x), cy=down(chart, each.y or 0.0), r=2, fill=line.paint)
        return
    shape = shape_of(line.colour if isinstance(line.colour, int) else DIAMOND)
    for each in line.marks:
        if each.y is None:
            continue
        x = across(chart, each.x)
        if each.low is not None and each.high is not None:
            yield whisker(x, down(chart, each.low), down(chart, each.high), line.paint)
        yield mark(shape, x, down(chart, each.y), line.paint, hollow=each.hollow)


def _texts(chart: Chart) -> Iterator[Element]:
    """The texts beside marks."""
    for line in chart.lines:
        for each in line.marks:
            if each.text and each.y is not None:
                yield text_at(across(chart, each.x), down(chart, each.y) - 9, each.text, size=11, anchor="middle")


def _slot(chart: Chart, mark: Mark, index: int) -> tuple[float, float]:
    """The middle and the width of the place of one of several series at a level."""
    width = 0.8 * WIDTH / max(len(chart.x.ticks), 1) / len(chart.lines)
    return across(chart, mark.x) + (index - (len(chart.lines) - 1) / 2) * width, width


def _boxes(chart: Chart, line: Line, index: int) -> Iterator[Element]:
    """Each repeat as a dot, and its box: with few repeats, only the median."""
    for each in line.marks:
        middle, width = _slot(chart, each, index)
        half, box = min(width * 0.35, 2 * SHORT), box_of(each.repeats)
        centre, lower, upper, low, high = (
            down(chart, value) for value in (box.median, box.lower, box.upper, box.low, box.high)
        )
        if len(each.repeats) >= MIN_REPEATS_OF_BOX:
            size = {"x": middle - half, "y": upper, "width": 2 * half, "height": lower - upper}
            yield element("rect", fill=line.paint, fill_opacity="0.13", stroke=line.paint, **size)
            yield path(f"M{px(middle)} {px(high)}V{px(upper)}M{px(middle)} {px(lower)}V{px(low)}", line.paint)
        yield path(f"M{px(middle - half)} {px(centre)}h{px(2 * half)}", line.paint, 2)
        for value in each.repeats:
            yield element("circle", cx=middle, cy=down(chart, value), r=3, fill=line.paint, fill_opacity="0.69")


def _bars(chart: Chart, line: Line, index: int) -> Iterator[Element]:
    """The length of a bar is its value, so a logarithmic axis, which has no zero to start from, has points."""
    if chart.y.logarithmic:
        beside = [replace(each, x=_slot(chart, each, index)[0]) for each in line.marks]
        scale = Axis(low=0, high=WIDTH, label="", ticks=())
        yield from _curve(replace(chart, x=scale, kind=Kind.LINES), replace(line, marks=tuple(beside), width=0))
        return
    for each in line.marks:
        if each.y is None:
            continue
        middle, width = _slot(chart, each, index)
        top = down(chart, each.y)
        box = {"x": middle - width * 0.45, "y": top, "width": width * 0.9, "height": HEIGHT - top}
        yield element("rect", fill=line.paint, fill_opacity="0.25" if each.hollow else "0.75", **box)
        if each.low is not None and each.high is not None:
            yield whisker(middle, down(chart, each.low), down(chart, each.high), MUTED)


def _violin(chart: Chart, line: Line) -> Iterator[Element]:
    """Equally wide at its fullest class."""
    most = max((share for *_, share in line.slices), default=0.0)
    if not most:
        return
    (median_mark,) = line.marks
    middle = across(chart, median_mark.x)
    unit = WIDTH / max(len(chart.x.ticks), 1)
    edge = [(down(chart, math.sqrt(low * high)), HALF_VIOLIN * unit * share / most) for low, high, share in line.slices]
    right = "".join(f"L{px(middle + half)} {px(y)}" for y, half in edge)
    left = "".join(f"L{px(middle - half)} {px(y)}" for y, half in reversed(edge))
    bottom, top = down(chart, line.slices[0][0]), down(chart, line.slices[-1][1])
    outline = f"M{px(middle)} {px(bottom)}{right}L{px(middle)} {px(top)}{left}Z"
    yield element("path", d=outline, fill=line.paint, fill_opacity="0.27", stroke=line.paint)
    if median_mark.high is not None:
        half = HALF_VIOLIN * unit / 3
        yield path(f"M{px(middle - half)} {px(down(chart, median_mark.high))}h{px(2 * half)}", line.paint, 2)
    if median_mark.y is not None:
        yield mark(shape_of(int(line.colour)), middle, down(chart, median_mark.y), line.paint)
