"""Charts as SVG, drawn on the server: for pictures in other pages, which have no scripts. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from textwrap import wrap
from xml.etree.ElementTree import Element, tostring

from webapp.analysis.answer import Level
from webapp.core.colours import HEX

# The box of a few repeats, as `frontend/src/features/repeatsChart.ts` draws it.

MIN_REPEATS_OF_BOX = 5  # a box of fewer repeats would show quartiles that are only guesses


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


WIDTH, HEIGHT = 760, 260  # of the area of one chart
LEFT, RIGHT, BELOW = 84, 16, 44  # room for the names of values and levels
LINE, CHARACTER = 18, 6.6  # height of a line of text, width of a character of 12 px
CAPITAL, WIDE = 9.0, 7.6  # in wide fonts, for names beside each other
FONT = '"Inter Variable", Arial, "Liberation Sans", sans-serif'
TEXT, MUTED, GRID = "#1f2933", "#5f6b7a", "#e1e5ea"
MOST_CHARTS = 12
SHORT = 18  # px: half the width of a line with one level


@dataclass(frozen=True)
class Mark:
    """`y` is None for a gap in the line. `low` and `high` are the ends of a whisker. `repeats` are drawn as a box."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    repeats: tuple[float, ...] = ()


@dataclass(frozen=True)
class Line:
    name: str
    colour: int  # its number
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Axis:
    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """0 at the lower end of the axis, 1 at the upper end; values beyond are put at the end."""
        low, high, at = (self._scaled(each) for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.5

    def _scaled(self, value: float) -> float:
        if not self.logarithmic:
            return value
        return math.log(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class Chart:
    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    bars: bool = False
    boxes: bool = False
    dots: bool = True
    extra: tuple[Line, ...] = ()  # ceilings and references: dashed; without marks, only in the legend


@dataclass(frozen=True)
class Block:
    """Anything between the legend and the charts."""

    parts: tuple[Element, ...]
    height: float


NOTHING_FIRST = Block((), 0.0)


def picture(
    title: str, charts: Sequence[Chart], notes: Sequence[str], *, scaled: bool = False, first: Block = NOTHING_FIRST
) -> str:
    """One SVG: title, legend, the block, charts one below the other, notes. `scaled`: as wide as its place."""
    shown = charts[:MOST_CHARTS]
    more = len(charts) - len(shown)
    notes = [*notes, *([f"{more} more charts are not in this picture."] if more else [])]
    parts, top = [text_at(12, 26, title, size=16, weight=600)], 40.0
    extra = {line.name for chart in shown for line in chart.extra}
    for entry, place, down in legend_of(shown):
        parts += [
            _dashes(f"M{place:.1f} {top + down + 6:.1f}h12")
            if entry.name in extra
            else element("rect", x=place, y=top + down, width=11, height=11, fill=colour_of(entry.colour)),
            text_at(place + 16, top + down + 10, entry.name),
        ]
    top += max((down for *_, down in legend_of(shown)), default=0.0) + 1.5 * LINE
    parts.append(element("g", *first.parts, transform=f"translate(0 {top:.0f})"))
    top += first.height
    for chart in shown:
        if chart.title:
            parts.append(text_at(12, top + 12, chart.title, size=13, weight=600))
            top += LINE
        parts.append(element("g", *_chart(chart), transform=f"translate({LEFT} {top + 8:.0f})"))
        top += HEIGHT + BELOW + 12
    for line in (line for note in notes for line in wrap(note, int((WIDTH + LEFT) / CHARACTER))):
        top += LINE
        parts.append(text_at(12, top, line, fill=MUTED))
    return tostring(_sheet(title, parts, math.ceil(top + 12), scaled=scaled), encoding="unicode")


def _sheet(title: str, parts: Sequence[Element], height: int, *, scaled: bool) -> Element:
    width = LEFT + WIDTH + RIGHT
    size: dict[str, str | float] = {"width": "100%"} if scaled else {"width": width, "height": height}
    return element(
        "svg",
        element("title", title),
        element("rect", width=width, height=height, fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        font_family=FONT,
        font_size=12,
        **size,
    )


def levels_axis(label: str, levels: Sequence[Level], *, evenly: bool) -> tuple[Axis, list[float]]:
    """Numbers on a linear axis, or a logarithmic one if they span a factor of four; names one after the other."""
    numbers = [level.number for level in levels if level.number is not None]
    if evenly or len(numbers) < max(len(levels), 2) or 0 in numbers:
        places = [float(place) for place in range(len(levels))]
        ticks = tuple((place, level.text) for place, level in zip(places, levels, strict=True))
        return Axis(label, -0.5, len(levels) - 0.5, ticks), places
    ticks = tuple((number, level.text) for number, level in zip(numbers, levels, strict=True))
    wide = min(numbers) > 0 and max(numbers) / min(numbers) >= 4
    room = 2**0.25 if wide else 1.0
    return Axis(label, min(numbers) / room, max(numbers) * room, ticks, logarithmic=wide), numbers


def value_axis(label: str, values: Sequence[float], text: Callable[[float], str], *, logarithmic: bool = False) -> Axis:
    """From zero, or over whole powers of ten."""
    above = [value for value in values if value > 0]
    if logarithmic and above:
        low, high = (10.0**edge for edge in (math.floor(math.log10(min(above))), math.ceil(math.log10(max(above)))))
        high = high if high > low else low * 10
        count = round(math.log10(high / low))
        powers = (low * 10.0**n for n in range(0, count + 1, max(1, count // 6)))
        return Axis(label, low, high, tuple((power, text(power)) for power in powers), logarithmic=True)
    high = max(values, default=0.0) or 1.0
    step = _step(high / 5)
    ticks = tuple((n * step, text(n * step)) for n in range(math.ceil(high / step) + 1))
    return Axis(label, 0.0, ticks[-1][0], ticks)


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * 0.999)


# ---- parts


def colour_of(colour: int) -> str:
    return HEX[colour % len(HEX)]


def element(tag: str, *content: Element | str, **attributes: str | float) -> Element:
    """`content` is a text or elements. Numbers have one decimal; `_` in the name of an attribute stands for `-`."""
    made = Element(tag, {name.replace("_", "-"): _attribute(value) for name, value in attributes.items()})
    for each in content:
        if isinstance(each, str):
            made.text = each
        else:
            made.append(each)
    return made


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def text_at(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, anchor: str = "start", fill: str = TEXT
) -> Element:
    look: dict[str, str | float] = {"font_size": size, "font_weight": weight, "text_anchor": anchor, "fill": fill}
    return element("text", text, x=x, y=y, **look)


def path(line: str, colour: str, width: float = 1) -> Element:
    return element("path", d=line, fill="none", stroke=colour, stroke_width=width)


def legend_of(charts: Sequence[Chart]) -> list[tuple[Line, float, float]]:
    """Each series once, with its place in rows."""
    found, place, down = [], 12.0, 0.0
    for line in {line.name: line for chart in charts for line in (*chart.lines, *chart.extra)}.values():
        width = 16 + sum(CAPITAL if letter.isupper() else WIDE for letter in line.name) + 16
        if place > 12 and place + width > LEFT + WIDTH:
            place, down = 12.0, down + LINE
        found.append((line, place, down))
        place += width
    return found


def _chart(chart: Chart) -> Iterator[Element]:
    yield from _axes(chart)
    for line in chart.extra:
        yield from _dashed(chart, line)
    for index, line in enumerate(chart.lines):
        if chart.boxes:
            yield from _boxes(chart, line, index)
        else:
            yield from _bars(chart, line, index) if chart.bars else _curve(chart, line)


def _axes(chart: Chart) -> Iterator[Element]:
    for value, text in chart.y.ticks:
        y = HEIGHT * (1 - chart.y.share(value))
        yield path(f"M0 {y:.1f}H{WIDTH}", GRID)
        yield text_at(-8, y + 4, text, anchor="end", fill=MUTED)
    room = -1e9
    for value, text in chart.x.ticks:
        x, half = WIDTH * chart.x.share(value), len(text) * CHARACTER / 2
        if x - half > room:  # texts that would overlap are left out
            yield text_at(x, HEIGHT + 16, text, anchor="middle", fill=MUTED)
            room = x + half + 6
    yield path(f"M0 0V{HEIGHT}H{WIDTH}", MUTED)
    yield text_at(WIDTH / 2, HEIGHT + 34, chart.x.label, anchor="middle", fill=MUTED)
    label = text_at(0, 0, chart.y.label, anchor="middle", fill=MUTED)
    yield element("g", label, transform=f"translate({14 - LEFT} {HEIGHT / 2:.0f}) rotate(-90)")


def _curve(chart: Chart, line: Line) -> Iterator[Element]:
    colour, drawing, steps = colour_of(line.colour), False, []
    for mark in line.marks:
        if mark.y is None:
            drawing = False
            continue
        x, y = WIDTH * chart.x.share(mark.x), HEIGHT * (1 - chart.y.share(mark.y))
        steps.append(f"{'L' if drawing else 'M'}{x:.1f} {y:.1f}")
        drawing = True
        yield from _whisker(chart, mark, x, colour)
        if chart.dots:
            yield element("circle", cx=x, cy=y, r=3.5, fill=colour)
    yield path("".join(steps), colour, 2)


def _dashes(line: str) -> Element:
    return element("path", d=line, fill="none", stroke=MUTED, stroke_width=1.5, stroke_dasharray="6 4")


def _dashed(chart: Chart, line: Line) -> Iterator[Element]:
    """A single mark is a short line."""
    places = [(WIDTH * chart.x.share(mark.x), _up(chart, mark.y)) for mark in line.marks if mark.y is not None]
    if len(places) == 1:
        places = [(places[0][0] + shift, places[0][1]) for shift in (-SHORT, SHORT)]
    if places:
        yield _dashes("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places))


def _up(chart: Chart, value: float) -> float:
    return HEIGHT * (1 - chart.y.share(value))


def _slot(chart: Chart, mark: Mark, index: int) -> tuple[float, float]:
    """The middle and the width of the place of one of several series at a level."""
    width = 0.8 * WIDTH / max(len(chart.x.ticks), 1) / len(chart.lines)
    return WIDTH * chart.x.share(mark.x) + (index - (len(chart.lines) - 1) / 2) * width, width


def _boxes(chart: Chart, line: Line, index: int) -> Iterator[Element]:
    """Each repeat as a dot, and its box: with few repeats, only the median."""
    colour = colour_of(line.colour)
    for mark in line.marks:
        middle, width = _slot(chart, mark, index)
        half, found = min(width * 0.35, 2 * SHORT), box_of(mark.repeats)
        median, lower, upper, low, high = (
            _up(chart, value) for value in (found.median, found.lower, found.upper, found.low, found.high)
        )
        if len(mark.repeats) >= MIN_REPEATS_OF_BOX:
            box = {"x": middle - half, "y": upper, "width": 2 * half, "height": lower - upper}
            yield element("rect", fill=colour, fill_opacity="0.13", stroke=colour, **box)
            yield path(f"M{middle:.1f} {high:.1f}V{upper:.1f}M{middle:.1f} {lower:.1f}V{low:.1f}", colour)
        yield path(f"M{middle - half:.1f} {median:.1f}h{2 * half:.1f}", colour, 2)
        for value in mark.repeats:
            yield element("circle", cx=middle, cy=_up(chart, value), r=3, fill=colour, fill_opacity="0.69")


def _bars(chart: Chart, line: Line, index: int) -> Iterator[Element]:
    """The length of a bar is its value, so a logarithmic axis, which has no zero to start from, has points."""
    colour = colour_of(line.colour)
    for mark in line.marks:
        if mark.y is None:
            continue
        middle, width = _slot(chart, mark, index)
        if chart.y.logarithmic:
            yield from _whisker(chart, mark, middle, colour)
            yield element("circle", cx=middle, cy=_up(chart, mark.y), r=3.5, fill=colour)
        else:
            height = HEIGHT * chart.y.share(mark.y)
            box = {"x": middle - width * 0.45, "y": HEIGHT - height, "width": width * 0.9, "height": height}
            yield element("rect", fill=colour, fill_opacity="0.75", **box)
            yield from _whisker(chart, mark, middle, MUTED)


def _whisker(chart: Chart, mark: Mark, x: float, colour: str) -> Iterator[Element]:
    if mark.low is not None and mark.high is not None:
        low, high = (HEIGHT * (1 - chart.y.share(value)) for value in (mark.low, mark.high))
        line = f"M{x - 4:.1f} {high:.1f}h8m-4 0V{low:.1f}m-4 0h8"
        yield path(line, colour, 1.5)
