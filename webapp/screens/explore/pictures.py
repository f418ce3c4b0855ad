"""The charts of Explore as pictures, from the payloads of the page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from xml.etree.ElementTree import Element

from webapp.analysis.answer import Comparison, Panel
from webapp.analysis.latency import PERCENTS
from webapp.analysis.question import ViewOptions
from webapp.analysis.timeline import TimeLines, has_seconds
from webapp.analysis.trial_metrics import metric_named
from webapp.core.formatting import clock, latency
from webapp.pictures.axes import Axis, levels_axis, time_axis, value_axis
from webapp.pictures.charts import DOTTED, Chart, Kind, Line, Mark, Piece, Slices
from webapp.pictures.drawing import Drawing
from webapp.pictures.elements import MUTED, colour_of, colours_of, element, mark, path, shape_of, text_at, width_of
from webapp.results.metrics import FORMATTERS, METRICS
from webapp.screens.ceilings import ceiling_lines
from webapp.screens.explore.answer import (
    Answer,
    ChartKind,
    LatencyCharts,
    MeansCharts,
    ReferenceLine,
    ScatterCharts,
    ScatterPanel,
    TimeCharts,
)
from webapp.screens.explore.heat import CELL_HEIGHT, CELL_WIDTH, Heat, HeatMap, heat_of
from webapp.screens.explore.shown import latency_charts, means_charts, time_charts

MIN_REPEATS_OF_AXIS = 3  # as in the page: intervals of two repeats do not set the axis
MAX_NAME = 110  # characters of the name of a reference, which has a row of the legend
REACH = 3  # as in the page: a line above this multiple of the highest value does not set the axis
MAX_REPEATS_DRAWN = 20  # as in the page, of a series over time
PER_OCTAVE, BUCKET = 8, 1 / 64  # classes of a violin; the width of a bucket of the histogram
TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)  # s
LATENCY_KINDS = {
    "lat": "; total latency, from submission to completion", "clat": "; completion latency, without the submission",
}  # fmt: skip


def explore_drawing(answer: Answer, options: ViewOptions, title: str = "", notes: Sequence[str] = ()) -> Drawing:
    """The charts of the view. Without a title, that of the page."""
    comparison, title = answer.comparison, title or _title(answer, options)
    if answer.lines:
        payload = time_charts(answer.lines, options, answer.bounds)
        part = "" if answer.chart_point in title else answer.chart_point
        return Drawing(title, time_pictures(payload, part), time_note(answer.lines), notes=notes)
    if options.view == "latency":
        shown = latency_charts(answer.distributions, options)
        return Drawing(title, latency_pictures(shown), _kinds(shown), notes=notes)
    if answer.scatter:
        note = "Means of the repeats. Points are joined in the order of levels."
        return Drawing(title, scatter_pictures(answer.scatter, comparison), note, notes=notes)
    if options.chart == "heat":
        heat = heat_of(comparison, ratios=options.cells == "ratio")
        return Drawing(title, note=heat.words, further=heat_pieces(heat, comparison), notes=notes)
    lines = answer.references.lines if answer.references else ()
    means = means_charts(comparison, options, answer.bounds, lines)
    shown_as = (
        "Each point is one repeat" if means.kind is ChartKind.BOX else "Mean of the repeats; whiskers: 95 % interval"
    )
    return Drawing(title, mean_pictures(means), f"{shown_as}.", notes=notes)


def _title(answer: Answer, options: ViewOptions) -> str:
    if answer.lines:
        return f"{answer.lines.label} over time at {answer.chart_point}"
    if options.view == "latency":
        return f"Latency at {answer.chart_point}"
    if answer.scatter:
        return f"{answer.scatter.y_label} over {answer.scatter.x_label}"
    return f"{answer.comparison.metric_label} over {answer.comparison.x_label}"


def _colours(comparison: Comparison) -> Mapping[str, int]:
    return colours_of(series.name for panel in comparison.panels for series in panel.series)


def _named(name: str, *, is_baseline: bool) -> str:
    return f"{name} (baseline)" if is_baseline else name


# ---- means


def mean_pictures(payload: MeansCharts) -> list[Chart]:
    panels = payload.comparison.panels
    together = [value for panel in panels for value in _reach(panel, payload)] if payload.shared else []
    return [_means(payload, panel, index, together) for index, panel in enumerate(panels)]


def _means(payload: MeansCharts, panel: Panel, index: int, together: Sequence[float]) -> Chart:
    comparison, kind = payload.comparison, payload.kind
    used = sorted({cell.level for series in panel.series for cell in series.cells})
    levels = [(comparison.levels[level].text, comparison.levels[level].number) for level in used]
    is_apart = len(levels) < 2 or any(number is None for _, number in levels)
    bars = kind is ChartKind.BAR or (kind is ChartKind.AUTO and is_apart)
    x, places = levels_axis(comparison.x_label, levels, evenly=bars or kind is ChartKind.BOX)
    at = dict(zip(used, places, strict=True))
    extra = (*ceiling_lines(payload.ceilings, x), *_references(payload.references, index, at))
    values = _with_lines(together or _reach(panel, payload), extra)
    text = metric_named(comparison.metric).format
    y = value_axis(comparison.metric_label, values, text, logarithmic=payload.logarithmic)
    shape = Kind.BOXES if kind is ChartKind.BOX else Kind.BARS if bars else Kind.LINES
    return Chart(panel.name, x, y, _series(payload, panel, at), shape, _visible(extra, y))


def _series(payload: MeansCharts, panel: Panel, at: Mapping[int, float]) -> tuple[Line, ...]:
    order = {level: place for place, level in enumerate(at)}
    colours = _colours(payload.comparison)
    lines = []
    for series in panel.series:
        name = _named(series.name, is_baseline=series.is_baseline) if len(colours) > 1 else ""  # without a legend
        places = [order[cell.level] for cell in series.cells]
        marks = tuple(
            Mark(
                at[cell.level], cell.summary.mean, cell.summary.low, cell.summary.high, tuple(cell.summary.values),
                hollow=bool(cell.doubts), after_gap=number > 0 and places[number] - places[number - 1] > 1,
            )
            for number, cell in enumerate(series.cells)
        )  # fmt: skip
        lines.append(Line(name, colours[series.name], marks))
    return tuple(lines)


def _reach(panel: Panel, payload: MeansCharts) -> list[float]:
    """Values that the axis must show."""
    summaries = [cell.summary for series in panel.series for cell in series.cells]
    if payload.kind is ChartKind.BOX:
        return [value for summary in summaries for value in summary.values]
    tops = [max(summary.mean, summary.high or 0.0) for summary in summaries if summary.n >= MIN_REPEATS_OF_AXIS]
    return [*tops, *(summary.mean for summary in summaries)]


def _references(lines: Sequence[ReferenceLine], index: int, at: Mapping[int, float]) -> Iterator[Line]:
    for line in lines:
        known = [point for point in line.points if point.level in at]
        if line.panel == index and known:
            texts = dict.fromkeys((known[0].text, known[-1].text))
            marks = tuple(Mark(at[point.level], point.value) for point in known)
            name = shorten(f"{line.name}: {' to '.join(texts)}", MAX_NAME, placeholder=" …")
            yield Line(name, MUTED, marks, dash=DOTTED)


def _with_lines(values: Sequence[float], extra: Sequence[Line]) -> list[float]:
    """The values, and those of lines in reach."""
    limit = REACH * max(values, default=0.0)
    return [*values, *(mark.y for line in extra for mark in line.marks if mark.y is not None and mark.y <= limit)]


def _visible(extra: Sequence[Line], y: Axis) -> tuple[Line, ...]:
    """A line beyond the axis is only in the legend."""
    return tuple(
        line if all((mark.y or 0.0) <= y.high for mark in line.marks) else Line(line.name, MUTED, (), dash=line.dash)
        for line in extra
    )


# ---- two metrics


def scatter_pictures(payload: ScatterCharts, comparison: Comparison) -> list[Chart]:
    return [_scatter(payload, panel, _colours(comparison)) for panel in payload.panels]


def _scatter(payload: ScatterCharts, panel: ScatterPanel, colours: Mapping[str, int]) -> Chart:
    lines = tuple(
        Line(
            _named(series.name, is_baseline=series.is_baseline),
            colours[series.name],
            tuple(Mark(point.x, point.y) for point in series.points),
            width=1.5,
        )
        for series in panel.series
    )
    marks = [mark for line in lines for mark in line.marks]
    x_text, y_text = FORMATTERS[payload.x_shown_as], FORMATTERS[payload.y_shown_as]
    x = value_axis(payload.x_label, [mark.x for mark in marks], x_text, logarithmic=payload.logarithmic)
    y = value_axis(payload.y_label, [mark.y or 0.0 for mark in marks], y_text, logarithmic=payload.logarithmic)
    return Chart(panel.name, x, y, lines)


# ---- latency


def latency_pictures(payload: LatencyCharts) -> list[Chart]:
    """Percentiles, cumulative shares, violins."""
    if not payload.series:
        return []
    colours = colours_of(distribution.name for distribution in payload.series)
    return [_ladder(payload, colours), _cumulative(payload, colours), _violins(payload, colours)]


def _kinds(payload: LatencyCharts) -> str:
    kinds = {kind for distribution in payload.series for kind in distribution.kinds}
    return f"All I/Os of the repeats{LATENCY_KINDS.get(kinds.pop(), '') if len(kinds) == 1 else ''}."


def _ladder(payload: LatencyCharts, colours: Mapping[str, int]) -> Chart:
    x, places = levels_axis("Percentile", [(f"p{percent:g}", None) for percent in payload.percents], evenly=True)
    lines = tuple(
        Line(
            _named(distribution.name, is_baseline=distribution.is_baseline),
            colours[distribution.name],
            tuple(Mark(at, ns) for at, ns in zip(places, distribution.percentiles_ns, strict=True)),
        )
        for distribution in payload.series
    )
    values = [mark.y for line in lines for mark in line.marks if mark.y is not None]
    return Chart("Percentiles", x, value_axis("Latency", values, latency, logarithmic=True), lines)


def _cumulative(payload: LatencyCharts, colours: Mapping[str, int]) -> Chart:
    def place(share: float) -> float | None:
        return 100 * share if not payload.nines else -math.log10(1 - share) if share < 1 else None

    lines = tuple(
        Line(
            _named(distribution.name, is_baseline=distribution.is_baseline),
            colours[distribution.name],
            tuple(
                Mark(ns, place(share)) for ns, share in zip(distribution.cdf_ns, distribution.cdf_shares, strict=True)
            ),
        )
        for distribution in payload.series
    )
    x = value_axis("Latency", [mark.x for line in lines for mark in line.marks], latency, logarithmic=True)
    top = max((mark.y or 0.0 for line in lines for mark in line.marks), default=1.0)
    shares = (
        [(float(n), 100 * (1 - 10.0**-n)) for n in range(math.ceil(top) + 1)]
        if payload.nines
        else [(20.0 * n, 20.0 * n) for n in range(6)]
    )
    ticks = tuple((at, f"{percent:.6g} %") for at, percent in shares)
    y = Axis(low=0.0, high=shares[-1][0], label="Share of I/Os", ticks=ticks)
    return Chart("Cumulative share of I/Os by latency", x, y, lines, Kind.STEPS)


def _violins(payload: LatencyCharts, colours: Mapping[str, int]) -> Chart:
    lines = []
    for place, distribution in enumerate(payload.series):
        at = dict(zip(PERCENTS, distribution.percentiles_ns, strict=True))
        slices = slices_of(distribution.cdf_ns, distribution.cdf_shares)
        median = Mark(place, at[50.0], None, at[99.0])
        name = _named(distribution.name, is_baseline=distribution.is_baseline)
        lines.append(Line(name, colours[distribution.name], (median,), slices=slices))
    ends = [end for line in lines for low, high, _ in line.slices for end in (low, high)]
    x, _ = levels_axis("", [(distribution.name, None) for distribution in payload.series], evenly=True)
    y = value_axis("Latency", ends, latency, logarithmic=True)
    return Chart("Violins of all I/Os: median, and line at the p99", x, y, tuple(lines), Kind.VIOLINS)


def slices_of(cdf_ns: Sequence[int], cdf_shares: Sequence[float]) -> Slices:
    """The share of I/Os in classes of equal ratio, from the lowest to the highest class with I/Os. I/Os between two
    known latencies are spread evenly between these, on a logarithmic axis."""
    shares: dict[int, float] = {}
    below, counted = 0.0, 0.0
    for number, (ns, until) in enumerate(zip(cdf_ns, cdf_shares, strict=True)):
        low, high = max(ns * (1 - BUCKET) if number == 0 else below, 1.0), max(float(ns), 1.0)
        start, end = (PER_OCTAVE * math.log2(edge) for edge in (low, high))
        first, last = math.floor(start + 1e-9), math.floor(end)
        for each in range(first, last + 1):
            part = (min(each + 1, end) - max(each, start)) / (end - start) if last > first else 1.0
            shares[each] = shares.get(each, 0.0) + (until - counted) * part
        below, counted = ns, until
    if not shares:
        return ()
    classes = range(min(shares), max(shares) + 1)
    return [(2 ** (n / PER_OCTAVE), 2 ** ((n + 1) / PER_OCTAVE), shares.get(n, 0.0)) for n in classes]


# ---- over time


def time_note(lines: TimeLines) -> str:
    return f"Thick: mean of the repeats; thin: {'lowest to highest second' if lines.bin_s > 1 else 'each repeat'}."


def time_pictures(payload: TimeCharts, title: str = "") -> list[Chart]:
    time_lines = payload.lines
    if not has_seconds(time_lines):
        return []

    def marks(values: Sequence[float | None]) -> tuple[Mark, ...]:
        return tuple(Mark(time_lines.from_s + place * time_lines.bin_s, value) for place, value in enumerate(values))

    colours, lines = colours_of(series.name for series in time_lines.series), list[Line]()
    for series in time_lines.series:
        name, colour = _named(series.name, is_baseline=series.is_baseline), colours[series.name]
        lines.append(Line(name, colour, marks(series.mean), width=2.5))
        if time_lines.bin_s > 1:
            ends = zip(marks(series.low), marks(series.high), strict=True)
            lines.append(Line(name, colour, tuple(end for pair in ends for end in pair), width=0.8, opacity="0.5"))
        elif len(series.repeats) > 1:
            repeats = series.repeats[:MAX_REPEATS_DRAWN]
            lines += [Line(name, colour, marks(values), width=0.8, opacity="0.5") for values in repeats]
    times = [mark.x for line in lines for mark in line.marks]
    values = [mark.y for line in lines for mark in line.marks if mark.y is not None]
    x = time_axis("Time since start", min(times), max(times), clock, TIME_STEPS)
    extra = tuple(ceiling_lines(payload.ceilings, x))
    text = METRICS[time_lines.metric].format
    y = value_axis(time_lines.label, _with_lines(values, extra), text, logarithmic=payload.logarithmic)
    return [Chart(title, x, y, tuple(lines), Kind.CURVES, _visible(extra, y))]


# ---- heat maps

# Of the light theme in `heat.css`: a cell, and its text.
_BLUES = ("f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b")
_RATIOS = ("b35806", "d9791a", "f1a340", "fbd5a0", "f2f2f2", "bcdcee", "74add1", "3672b0", "1f4f99")
STEP_COLOURS = {
    f"{kind}{n}": f"#{cell}"
    for kind, steps_of_kind in zip("sd", (_BLUES, _RATIOS), strict=True)
    for n, cell in enumerate(steps_of_kind)
}
_LIGHT_TEXT = frozenset({"s6", "s7", "s8", "d0", "d7", "d8"})
HEAD = 44  # px above the cells


def heat_pieces(heat: Heat, comparison: Comparison) -> list[Piece]:
    colours = _colours(comparison)
    legend = []
    for place, (step, text) in enumerate(heat.legend):
        legend += list(_cell(12 + place * CELL_WIDTH, 0, 22, step, text))
    width = 24 + len(heat.legend) * CELL_WIDTH
    return [*(_heat_piece(grid, comparison, colours) for grid in heat.maps), Piece(tuple(legend), width, 30)]


def _heat_piece(grid: HeatMap, comparison: Comparison, colours: Mapping[str, int]) -> Piece:
    names = [_named(row.series, is_baseline=row.is_baseline) for row in grid.rows]
    cells = 44 + max(width_of(name) for name in names)  # px from the left
    texts: list[Element] = []  # over the lines
    parts = [text_at(12, 12, grid.name or comparison.metric_label, size=13, weight=600)]
    parts.append(text_at(cells, 22, comparison.x_label, fill=MUTED))
    for column, level in enumerate(grid.levels):
        parts.append(text_at(cells + (column + 0.5) * CELL_WIDTH, HEAD - 6, level, anchor="middle", fill=MUTED))
    for number, (row, name) in enumerate(zip(grid.rows, names, strict=True)):
        top = HEAD + number * CELL_HEIGHT
        parts.append(mark(shape_of(colours[row.series]), 18, top + CELL_HEIGHT / 2, colour_of(colours[row.series])))
        parts.append(text_at(30, top + CELL_HEIGHT / 2 + 4, name))
        for column, cell in enumerate(row.cells):
            left = cells + column * CELL_WIDTH
            if cell:
                ground, text = _cell(left, top, CELL_HEIGHT, cell.step, f"{cell.text}{' ?' if cell.doubts else ''}")
                parts.append(ground)
                texts.append(text)
            else:
                middle = left + CELL_WIDTH / 2, top + CELL_HEIGHT / 2 + 4
                parts.append(text_at(*middle, "–", anchor="middle", fill=MUTED))
    parts.append(element("g", *_contours(grid), transform=f"translate({cells} {HEAD})"))
    parts += texts
    return Piece(tuple(parts), cells + len(grid.levels) * CELL_WIDTH + 12, HEAD + len(grid.rows) * CELL_HEIGHT + 8)


def _cell(left: float, top: float, height: float, step: str, text: str) -> tuple[Element, Element]:
    fill = "#ffffff" if step in _LIGHT_TEXT else "#111827"
    return (
        element("rect", x=left, y=top, width=CELL_WIDTH - 1, height=height - 1, fill=STEP_COLOURS[step]),
        text_at(left + CELL_WIDTH / 2, top + height / 2 + 4, text, anchor="middle", fill=fill),
    )


def _contours(grid: HeatMap) -> Iterator[Element]:
    for colour, width in (("#ffffff", 4), ("#111827", 1.5)):
        for contour in grid.contours:
            line = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for (a, b), (c, d) in contour.segments)
            yield path(line, colour, width)
    for contour in grid.contours:
        if contour.label:
            x, y = contour.label
            wide = 7.0 * len(contour.text) + 6
            yield element("rect", x=x - wide / 2, y=y - 7, width=wide, height=14, fill="#ffffff")
            yield text_at(x, y + 4, contour.text, size=11, weight=600, anchor="middle")
