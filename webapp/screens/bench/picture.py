"""The picture of a saved comparison of products, for other pages: its verdict, forest plot, curves and findings."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from xml.etree.ElementTree import Element

from django.utils import timezone

from webapp.analysis.answer import Level
from webapp.analysis.models import SavedComparison
from webapp.bench.answer import Verdict
from webapp.bench.curves import MIN_LEVELS
from webapp.core.formatting import latency
from webapp.results.metrics import METRICS
from webapp.screens.bench.charts import BenchChart
from webapp.screens.bench.report import BenchReport, ReportRow, report_to
from webapp.screens.bench.rows import ShownCell
from webapp.screens.bench.tracks import Forest, ForestPart, ForestRow, forest
from webapp.screens.explore.drawing import (
    GRID,
    LEFT,
    LINE,
    MUTED,
    NOTHING_FIRST,
    RIGHT,
    WIDTH,
    Block,
    Chart,
    Line,
    Mark,
    colour_of,
    element,
    levels_axis,
    path,
    picture,
    text_at,
    value_axis,
)
from worker.contract.packing import BEYOND

FINDINGS = 3
_TEXTS = {"iops": METRICS["iops"].format, "bytes_per_s": METRICS["bytes_per_s"].format, "latency": latency}


def report_picture(saved: SavedComparison, *, scaled: bool = False) -> str:
    """SVG. Raises Refusal."""
    report = report_to(saved)
    at = saved.frozen_at or timezone.now()
    source = f"Sweetspot, {at:%Y-%m-%d %H:%M} UTC, {report.results} results. {report.shared}."
    found = (f"{panel}: {sentence}" for panel, sentence in report.findings[:FINDINGS])
    ignored = [f"Ignored factors: {', '.join(report.ignored)}. Values are means over their levels."]
    notes = [*report.warnings, *(ignored if report.ignored else []), *_headlines(report), *found, source]
    return picture(saved.title, list(_charts(report)), notes, scaled=scaled, first=_first(report))


# The verdict and the forest plot, at the positions of the page.

LEAD_PX, LEAD_CHARACTERS, LINE_CHARACTERS = 20, 64, 120
VALUES, RATIOS, TEXTS = 150.0, 430.0, 700.0  # left ends of the columns, in pixels
TRACK = 255.0  # width of a track
_SHAPES = (
    "M0-5a5 5 0 1 0 0 10A5 5 0 1 0 0-5Z", "M-4.3-4.3H4.3V4.3H-4.3Z", "M0-5.3 5 4.2H-5Z", "M0-5.8 5.3 0 0 5.8-5.3 0Z",
    "M0 5.3-5-4.2H5Z", "M-1.6-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6Z", "M0-5.5 5-1.6 3.1 4.5H-3.1L-5-1.6Z",
    "M-3.1-5.2 0-2 3.1-5.2 5.2-3.1 2 0 5.2 3.1 3.1 5.2 0 2-3.1 5.2-5.2 3.1-2 0-5.2-3.1Z",
)  # fmt: skip  # those of bench_shapes.html
_LEFTWARDS, _RIGHTWARDS = "M-6 0 3-5.2V5.2Z", "M6 0-3-5.2V5.2Z"
# The palette of pictures, which are always light.
EQUAL, BAND = "#7a8390", "#e6e8ec"
_HOLLOW = frozenset({"unclear", "once", "drift"})


def _first(report: BenchReport) -> Block:
    """Nothing in reports that were frozen before the answer held the plot."""
    if report.answer is None or report.answer.verdict is None:
        return NOTHING_FIRST
    parts, top = list(_verdict(report.answer.verdict)), _verdict_height(report.answer.verdict)
    plot = forest(report.answer)
    if plot:
        drawn, height = _forest(plot)
        parts.append(element("g", *drawn, transform=f"translate(0 {top:.0f})"))
        top += height
    return Block(tuple(parts), top + 1.5 * LINE)


def _lead(verdict: Verdict) -> list[str]:
    return wrap(f"{verdict.lead} {verdict.rest}".strip(), LEAD_CHARACTERS)


def _below(verdict: Verdict) -> list[str]:
    pills = [f"{pill}." for pill in (verdict.repeats, *verdict.pills) if pill]
    return wrap(" ".join((*verdict.line, *pills)), LINE_CHARACTERS)


def _verdict(verdict: Verdict) -> Iterator[Element]:
    top = 0.0
    for line in _lead(verdict):
        top += LEAD_PX * 1.2
        yield text_at(12, top, line, size=LEAD_PX, weight=600)
    for line in _below(verdict):
        top += LINE
        yield text_at(12, top, line)


def _verdict_height(verdict: Verdict) -> float:
    return len(_lead(verdict)) * LEAD_PX * 1.2 + (len(_below(verdict)) + 1) * LINE


def _forest(plot: Forest) -> tuple[list[Element], float]:
    parts, top = [text_at(12, LINE - 4, plot.ratio_of, weight=600)], 2.6 * LINE
    parts += [
        text_at(12, 2 * LINE, ", ".join(plot.columns), fill=MUTED),
        text_at(RATIOS, 2 * LINE, plot.towards[0], fill=MUTED),
        text_at(RATIOS + TRACK, 2 * LINE, plot.towards[1], anchor="end", fill=MUTED),
    ]
    for place, product in enumerate(plot.compared if len(plot.compared) > 1 else ()):
        right = TEXTS + (place + 1) * _text_width(len(plot.compared))
        parts.append(_mark(_SHAPES[product.colour % len(_SHAPES)], right - 6, 2 * LINE - 5, colour_of(product.colour)))
    for part in plot.parts:
        for name, words, rows, _ in part.groups:
            parts.append(text_at(12, top + 12, f"{name} {words}".strip(), weight=600))
            top += LINE
            for row in rows:
                parts.append(element("g", *_row(plot, part, row), transform=f"translate(0 {top:.0f})"))
                top += plot.height
        parts += list(_axis(plot, part, top))
        top += 2.2 * LINE
    return parts, top


def _axis(plot: Forest, part: ForestPart, top: float) -> Iterator[Element]:
    for left, ticks, label in (
        (VALUES, part.ticks, f"{part.unit}, log"),
        (RATIOS, part.ratio_ticks, f"log, grey band {plot.margin}"),
    ):
        for tick in ticks:
            yield text_at(_at(left, tick.x), top + 12, tick.text, size=11, anchor="middle", fill=MUTED)
        yield text_at(left + TRACK / 2, top + 28, label, size=11, anchor="middle", fill=MUTED)


def _row(plot: Forest, part: ForestPart, row: ForestRow) -> Iterator[Element]:
    middle, height = plot.middle, plot.height
    yield text_at(12, middle + 4, "  ".join(text for text, _ in row.labels))
    for tick in part.ticks:
        yield path(f"M{_at(VALUES, tick.x):.1f} 0V{height}", GRID)
    if row.line[0]:
        yield path(f"M{_at(VALUES, row.line[0]):.1f} {middle}H{_at(VALUES, row.line[1]):.1f}", MUTED)
    for mark in row.marks:
        yield _mark(_SHAPES[mark.colour % len(_SHAPES)], _at(VALUES, mark.x), float(mark.y), colour_of(mark.colour))
    if row.lowest.x:
        yield text_at(_at(VALUES, row.lowest.x) - 10, middle + 4, row.lowest.text, size=11, anchor="end")
    if row.highest.x:
        yield text_at(_at(VALUES, row.highest.x) + 10, middle + 4, row.highest.text, size=11)
    yield element("rect", x=_at(RATIOS, part.band[0]), width=_long(part.band[1]), height=height, fill=BAND)
    yield path(f"M{_at(RATIOS, part.one):.1f} 0V{height}", MUTED)
    for ratio in row.ratios:
        colour = EQUAL if ratio.state in ("equal", "unclear") else colour_of(ratio.colour)
        if ratio.bar[0]:
            box = {"x": _at(RATIOS, ratio.bar[0]), "y": middle - 5, "width": _long(ratio.bar[1]), "height": 10.0}
            yield element("rect", fill=colour, fill_opacity="0.2", **box)
        if ratio.whisker[0]:
            low, high = (_at(RATIOS, end) for end in ratio.whisker)
            up, down = ratio.caps
            yield path(f"M{low:.1f} {up}V{down}M{low:.1f} {ratio.y}H{high:.1f}M{high:.1f} {up}V{down}", colour, 2)
        shape = {"left": _LEFTWARDS, "right": _RIGHTWARDS}.get(ratio.beyond, _SHAPES[ratio.shape % len(_SHAPES)])
        yield _mark(shape, _at(RATIOS, ratio.x), float(ratio.y), colour, hollow=ratio.state in _HOLLOW)
    wide = _text_width(len(row.texts))
    for place, text in enumerate(row.texts):
        weight = 600 if text.state == "different" else 400
        size = 12 if len(row.texts) < FEW else 9
        yield text_at(TEXTS + (place + 1) * wide, middle + 4, text.text, size=size, weight=weight, anchor="end")


FEW = 3  # texts beside the plot that have the usual size


def _text_width(texts: int) -> float:
    return (LEFT + WIDTH + RIGHT - TEXTS - 12) / max(texts, 1)


def _at(left: float, x: str) -> float:
    return left + _long(x)


def _long(width: str) -> float:
    return TRACK * float(width) / 100


def _mark(shape: str, x: float, y: float, colour: str, *, hollow: bool = False) -> Element:
    look = {"fill": "#ffffff", "stroke": colour} if hollow else {"fill": colour, "stroke": "#ffffff"}
    return element("path", d=shape, transform=f"translate({x:.1f} {y:.1f})", **look)


def _headlines(report: BenchReport) -> Iterator[str]:
    """Of reports that were frozen before the answer held the plot.
    `Random read, 4 KiB · QD 32: A 100 kIOPS; B 50 kIOPS ×0.50 (×0.49 to ×0.51).`"""
    names = [column.name for column in report.columns]
    for row in report.headlines:
        values = zip(names, row.cells, strict=True)
        yield f"{row.title}, {row.words}: {'; '.join(f'{name} {_value(row, cell)}' for name, cell in values)}."


def _value(row: ReportRow, cell: ShownCell | str) -> str:
    if isinstance(cell, str):
        return cell
    interval = f" ({cell.ratio_interval})" if cell.ratio_interval else ""
    unit = "" if cell.value == BEYOND else f" {row.unit}"
    return f"{cell.value}{unit}{f' {cell.ratio}{interval}' if cell.ratio else ''}"


def _charts(report: BenchReport) -> Iterator[Chart]:
    tables = [*report.curves, *([report.ladder] if report.ladder else [])]
    for table, chart in zip(tables, report.charts.charts, strict=True):
        yield _chart(f"{table.title} · {table.words}" if table.words else table.title, chart)


def _chart(title: str, chart: BenchChart) -> Chart:
    levels = [Level(level.text, level.text, level.number) for level in chart.levels]
    x, places = levels_axis(chart.x_label, levels, evenly=len(levels) < MIN_LEVELS)
    lines = tuple(
        Line(
            series.name,
            series.colour,
            tuple(Mark(places[point.level], point.mean, point.low, point.high) for point in series.points),
        )
        for series in chart.series
    )
    values = [value for line in lines for value in _values(line.marks)]
    y = value_axis(
        chart.y_label, values, _TEXTS.get(chart.shown_as, METRICS["iops"].format), logarithmic=chart.logarithmic
    )
    return Chart(title, x, y, lines)


def _values(marks: Sequence[Mark]) -> Iterator[float]:
    for mark in marks:
        yield from (value for value in (mark.y, mark.high) if value is not None)
