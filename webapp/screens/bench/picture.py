"""The picture of a saved comparison of products, for other pages: its verdict, forest plot, curves and findings."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from xml.etree.ElementTree import Element

from webapp.analysis.models import SavedComparison
from webapp.bench.answer import Verdict
from webapp.bench.curves import MIN_LEVELS
from webapp.pictures.axes import Axis, levels_axis, round_values, tick_text, value_axis
from webapp.pictures.charts import SHEET, Band, Chart, Line, Mark, Piece
from webapp.pictures.drawing import Drawing
from webapp.pictures.elements import (
    GRID,
    LEFTWARDS,
    LINE,
    MUTED,
    RIGHTWARDS,
    colour_of,
    element,
    mark,
    path,
    shape_of,
    text_at,
)
from webapp.results.metrics import FORMATTERS
from webapp.screens.bench.charts import BenchChart, BenchPoint, LoadChart, load_chart
from webapp.screens.bench.report import BenchReport, ReportRow, report_to
from webapp.screens.bench.rows import ShownCell
from webapp.screens.bench.tracks import Forest, ForestPart, ForestRow, forest
from webapp.screens.ceilings import ceiling_lines
from worker.contract.packing import BEYOND

FINDINGS = 3
REACH = 3  # as in the page: a ceiling above this multiple of the highest value does not set the axis


def report_drawing(saved: SavedComparison) -> tuple[Drawing, str]:
    """Also what the numbers are, to follow the date. Raises Refusal."""
    report = report_to(saved)
    findings = (f"{panel}: {sentence}" for panel, sentence in report.findings[:FINDINGS])
    ignored = [f"Ignored factors: {', '.join(report.ignored)}. Values are means over their levels."]
    notes = [*report.warnings, *(ignored if report.ignored else []), *_headlines(report), *findings]
    drawing = Drawing(saved.title, list(_charts(report)), first=_first(report), notes=notes)
    return drawing, f", {report.results} results. {report.shared}."


# The verdict and the forest plot, at the positions of the page.

LEAD_PX, LEAD_CHARACTERS, LINE_CHARACTERS = 20, 64, 120
VALUES, RATIOS, TEXTS = 150.0, 430.0, 700.0  # left ends of the columns, in pixels
TRACK = 255.0  # width of a track
# The palette of pictures, which are always light.
EQUAL, BAND = "#7a8390", "#e6e8ec"
_HOLLOW = frozenset({"unclear", "once", "drift"})


def _first(report: BenchReport) -> list[Piece]:
    """Nothing in reports that were frozen before the answer held the plot."""
    if report.answer is None or report.answer.verdict is None:
        return []
    verdict, plot = report.answer.verdict, forest(report.answer)
    return [Piece(tuple(_verdict(verdict)), SHEET, _verdict_height(verdict)), *([_forest(plot)] if plot else [])]


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


def _forest(plot: Forest) -> Piece:
    parts, top = [text_at(12, LINE - 4, plot.ratio_of, weight=600)], 2.6 * LINE
    parts += [
        text_at(12, 2 * LINE, ", ".join(plot.columns), fill=MUTED),
        text_at(RATIOS, 2 * LINE, plot.towards[0], fill=MUTED),
        text_at(RATIOS + TRACK, 2 * LINE, plot.towards[1], anchor="end", fill=MUTED),
    ]
    for place, product in enumerate(plot.compared if len(plot.compared) > 1 else ()):
        right = TEXTS + (place + 1) * _text_width(len(plot.compared))
        parts.append(mark(shape_of(product.colour), right - 6, 2 * LINE - 5, colour_of(product.colour)))
    for part in plot.parts:
        for name, words, rows, _ in part.groups:
            parts.append(text_at(12, top + 12, f"{name} {words}".strip(), weight=600))
            top += LINE
            for row in rows:
                parts.append(element("g", *_row(plot, part, row), transform=f"translate(0 {top:.0f})"))
                top += plot.height
        parts += list(_axis(plot, part, top))
        top += 2.2 * LINE
    return Piece(tuple(parts), SHEET, top)


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
    for value in row.marks:
        yield mark(shape_of(value.colour), _at(VALUES, value.x), float(value.y), colour_of(value.colour))
    if row.lowest.x:
        yield text_at(_at(VALUES, row.lowest.x) - 10, middle + 4, row.lowest.text, size=11, anchor="end")
    if row.highest.x:
        yield text_at(_at(VALUES, row.highest.x) + 10, middle + 4, row.highest.text, size=11)
    yield element("rect", x=_at(RATIOS, part.band[0]), width=_long(part.band[1]), height=height, fill=BAND)
    yield path(f"M{_at(RATIOS, part.one):.1f} 0V{height}", MUTED)
    for ratio in row.ratios:
        colour = EQUAL if ratio.is_inside or ratio.state in ("equal", "unclear") else colour_of(ratio.colour)
        if ratio.bar[0]:
            box = {"x": _at(RATIOS, ratio.bar[0]), "y": middle - 5, "width": _long(ratio.bar[1]), "height": 10.0}
            yield element("rect", fill=colour, fill_opacity="0.2", **box)
        if ratio.whisker[0]:
            low, high = (_at(RATIOS, end) for end in ratio.whisker)
            up, down = ratio.caps
            yield path(f"M{low:.1f} {up}V{down}M{low:.1f} {ratio.y}H{high:.1f}M{high:.1f} {up}V{down}", colour, 2)
        shape = {"left": LEFTWARDS, "right": RIGHTWARDS}.get(ratio.beyond, shape_of(ratio.shape))
        yield mark(shape, _at(RATIOS, ratio.x), float(ratio.y), colour, hollow=ratio.state in _HOLLOW)
    wide = _text_width(len(row.texts))
    for place, text in enumerate(row.texts):
        weight = 600 if text.state == "different" else 400
        size = 12 if len(row.texts) < FEW else 9
        yield text_at(TEXTS + (place + 1) * wide, middle + 4, text.text, size=size, weight=weight, anchor="end")


FEW = 3  # texts beside the plot that have the usual size


def _text_width(texts: int) -> float:
    return (SHEET - TEXTS - 12) / max(texts, 1)


def _at(left: float, x: str) -> float:
    return left + _long(x)


def _long(width: str) -> float:
    return TRACK * float(width) / 100


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
    """Load curves, curves, and the ladder."""
    if report.answer:
        for load in report.answer.loads:
            yield load_picture(
                " · ".join(filter(None, (load.name, load.words))), load_chart(load, report.answer.products)
            )
    tables = [*report.curves, *([report.ladder] if report.ladder else [])]
    for table, chart in zip(tables, report.charts.charts, strict=True):
        yield bench_picture(f"{table.title} · {table.words}" if table.words else table.title, chart)


def bench_picture(title: str, chart: BenchChart) -> Chart:
    """A curve, a latency ladder, or values over time."""
    levels = [(level.text, level.number) for level in chart.levels]
    x, places = levels_axis(chart.x_label, levels, evenly=len(levels) < MIN_LEVELS)
    lines = tuple(Line(series.name, series.colour, tuple(_marks(series.points, places))) for series in chart.series)
    values = [value for line in lines for value in _values(line.marks)]
    text = FORMATTERS[chart.shown_as]
    in_reach = [ceiling.value for ceiling in chart.ceilings if ceiling.value <= REACH * max(values, default=0.0)]
    y = value_axis(chart.y_label, [*values, *in_reach], text, logarithmic=chart.logarithmic)
    return Chart(title, x, y, lines, extra=tuple(ceiling_lines(chart.ceilings, x)))


def _marks(points: Sequence[BenchPoint], places: Sequence[float]) -> Iterator[Mark]:
    for number, point in enumerate(points):
        after_gap = number > 0 and point.level - points[number - 1].level > 1
        yield Mark(places[point.level], point.mean, point.low, point.high, after_gap=after_gap)


def _values(marks: Sequence[Mark]) -> Iterator[float]:
    for each in marks:
        yield from (value for value in (each.y, each.high) if value is not None)


ROOM = 1.35  # beside the values of a load curve, as a factor


def load_picture(title: str, chart: LoadChart) -> Chart:
    points = [point for series in chart.series for point in series.points]
    xs, ys = [point.x for point in points], [point.y for point in points]
    if chart.x_shown_as is None:
        ticks = tuple((tick.value, tick.text) for tick in chart.ticks)
        x = Axis(low=min(xs) / ROOM, high=max(xs) * ROOM, logarithmic=True, label=chart.x_label, ticks=ticks)
    else:
        x = value_axis(chart.x_label, [1.1 * max(xs)], FORMATTERS[chart.x_shown_as])
    low, high, text = min(ys) / ROOM, max(ys) * ROOM, FORMATTERS[chart.y_shown_as]
    y_ticks = tuple((value, tick_text(text(value))) for value in round_values(low, high, 8))
    y = Axis(low=low, high=high, logarithmic=True, label=f"{chart.y_label}, log", ticks=y_ticks)
    lines = tuple(
        Line(series.name, series.colour, tuple(Mark(point.x, point.y, text=point.label) for point in series.points))
        for series in chart.series
    )
    bands = tuple(Band(band.along, band.low, band.high, band.text) for band in chart.bands)
    return Chart(title, x, y, lines, bands=bands)
