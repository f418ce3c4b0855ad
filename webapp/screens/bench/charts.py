"""Curves and the latency ladder: the payload of their charts and the tables behind them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from django.utils.timezone import localtime

from webapp.bench.answer import BenchProduct, LoadCurve
from webapp.bench.curves import Curve, Ladder
from webapp.bench.product_history import OverTime
from webapp.bench.products import Product
from webapp.core.formatting import ShownAs
from webapp.core.statistics import Summary
from webapp.pictures.elements import colours_of
from webapp.plans.values import Value
from webapp.results.metrics import Metric, Missing
from webapp.screens.bench.rows import unit_of, value_text
from webapp.screens.payloads import ChartCeiling, Payload

# What Bench and the pages of products send to their charts.


class BenchPoint(Payload, frozen=True, kw_only=True):
    """`level` is an index into the levels of the chart; the texts are those of the table."""

    level: int
    mean: float
    low: float | None
    high: float | None
    text: str
    spread_text: str


class BenchSeries(Payload, frozen=True, kw_only=True):
    colour: int  # its number
    name: str
    points: tuple[BenchPoint, ...]


class BenchLevel(Payload, frozen=True, kw_only=True):
    text: str
    number: float | None


class BenchChart(Payload, frozen=True, kw_only=True):
    """A curve, a latency ladder, or values over time."""

    x_label: str
    y_label: str
    shown_as: ShownAs
    logarithmic: bool  # the axis of values
    levels: tuple[BenchLevel, ...]
    series: tuple[BenchSeries, ...]
    ceilings: tuple[ChartCeiling, ...]  # in charts of bandwidth, if they are switched on


class BenchCharts(Payload, frozen=True, kw_only=True):
    charts: tuple[BenchChart, ...]  # in the order of the canvases


class LoadChartPoint(Payload, frozen=True, kw_only=True):
    x: float
    y: float
    label: str  # the level, beside the point; "" beside most block sizes
    text: str  # both values


class LoadChartSeries(Payload, frozen=True, kw_only=True):
    colour: int  # its number
    name: str
    points: tuple[LoadChartPoint, ...]


class LoadChartBand(Payload, frozen=True, kw_only=True):
    """A limit. `product` is x times y: a diagonal where both axes are logarithmic."""

    along: Literal["x", "y", "product"]
    low: float
    high: float
    text: str


class LoadChartTick(Payload, frozen=True, kw_only=True):
    value: float
    text: str


class LoadChart(Payload, frozen=True, kw_only=True):
    x_label: str
    y_label: str
    x_shown_as: ShownAs | None  # None: `ticks` are the levels, on a logarithmic axis
    y_shown_as: ShownAs
    ticks: tuple[LoadChartTick, ...]
    series: tuple[LoadChartSeries, ...]
    bands: tuple[LoadChartBand, ...]


class LoadCharts(Payload, frozen=True, kw_only=True):
    charts: tuple[LoadChart, ...]  # in the order of the canvases


Names = Mapping[Product, str]
Colours = Mapping[Product, int]


@dataclass(frozen=True)
class TableRow:
    """One level; a text for each product."""

    level: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ChartTable:
    title: str
    words: str
    x_label: str
    unit: str
    rows: tuple[TableRow, ...]
    gaps: tuple[str, ...] = ()  # products with levels between others that they lack


def load_chart(load: LoadCurve, products: Sequence[BenchProduct]) -> LoadChart:
    known = {product.product: product for product in products}
    ticks = {point.x: point.x_text for series in load.series for point in series.points} if not load.has_latency else {}
    return LoadChart(
        x_label=load.x_label,
        y_label=load.y_label,
        x_shown_as=load.x_shown_as,
        y_shown_as=load.y_shown_as,
        ticks=tuple(LoadChartTick(value=value, text=ticks[value]) for value in sorted(ticks)),
        series=tuple(
            LoadChartSeries(
                colour=known[series.product].colour,
                name=known[series.product].short,
                points=tuple(
                    LoadChartPoint(
                        x=point.x,
                        y=point.y,
                        label=point.level if load.has_latency else "",
                        text=f"{load.level_label} {point.level}: {point.x_text}, {point.y_text}"
                        if load.has_latency
                        else f"{point.level}: {point.y_text}",
                    )
                    for point in series.points
                ),
            )
            for series in load.series
        ),
        bands=tuple(
            LoadChartBand(along=band.along, low=band.low, high=band.high, text=band.text) for band in load.bands
        ),
    )


@dataclass(frozen=True)
class LoadTable:
    """`rows`: the level, and the values of each product of the chart; "" where it was not measured."""

    name: str
    caption: str
    title: str
    level: str
    products: tuple[str, ...]
    rows: tuple[TableRow, ...]


def load_table(load: LoadCurve, products: Sequence[BenchProduct]) -> LoadTable:
    names = {product.product: product.name for product in products}
    levels = dict.fromkeys(point.level for series in load.series for point in series.points)
    texts = [
        {
            point.level: f"{point.x_text}, {point.y_text}" if load.has_latency else point.y_text
            for point in series.points
        }
        for series in load.series
    ]
    return LoadTable(
        name=load.name,
        caption=" · ".join(filter(None, (load.words, "grey: limits from findings" if load.bands else ""))),
        title="Load curve" if load.has_latency else "By block size",
        level=load.level_label,
        products=tuple(names[series.product] for series in load.series),
        rows=tuple(
            TableRow(level, tuple(texts_by_level.get(level, Missing.NOT_MEASURED) for texts_by_level in texts))
            for level in levels
        ),
    )


def curve_chart(curve: Curve, names: Names, colours: Colours, ceilings: Sequence[ChartCeiling] = ()) -> BenchChart:
    levels = zip(curve.texts, curve.numbers, strict=True)
    return BenchChart(
        x_label=curve.label,
        y_label=curve.panel.metric.label,
        shown_as=curve.panel.metric.shown_as,
        logarithmic=False,
        levels=tuple(BenchLevel(text=text, number=number) for text, number in levels),
        series=tuple(_curve_series(curve, names, colours)),
        ceilings=tuple(ceilings) if curve.panel.metric.key == "bytes_per_s" else (),
    )


def _curve_series(curve: Curve, names: Names, colours: Colours) -> Iterator[BenchSeries]:
    places = {level: index for index, level in enumerate(curve.levels)}
    for product, name in names.items():
        cells = curve.points.get(product, {})
        points = [_point(places[level], cell.summary, curve.panel.metric) for level, cell in cells.items()]
        if points:
            yield BenchSeries(colour=colours[product], name=name, points=tuple(points))


def _point(level: int, summary: Summary, metric: Metric) -> BenchPoint:
    spread = (
        f"95 % CI {metric.format(summary.low)} to {metric.format(summary.high)}, " if summary.low is not None else ""
    )
    return BenchPoint(
        level=level,
        mean=summary.mean,
        low=summary.low,
        high=summary.high,
        text=metric.format(summary.mean),
        spread_text=f"{spread}n = {summary.n}",
    )


def curve_table(curve: Curve, names: Names, absent: Names = MappingProxyType({})) -> ChartTable:
    """`absent` has the words in place of a value, if a product was not simply not measured."""
    metric, points = curve.panel.metric, curve.points
    factor, unit = unit_of(metric, [cell.summary.mean for cells in points.values() for cell in cells.values()])

    def text(product: Product, level: Value) -> str:
        cell = points.get(product, {}).get(level)
        return value_text(cell.summary.mean, factor, metric) if cell else absent.get(product, Missing.NOT_MEASURED)

    rows = [
        TableRow(words, tuple(text(product, level) for product in names))
        for words, level in zip(curve.texts, curve.levels, strict=True)
    ]
    title = f"{curve.panel.name} over {curve.label.lower()}"
    return ChartTable(title, curve.words, curve.label, unit, tuple(rows), tuple(_gaps(curve, names)))


def _gaps(curve: Curve, names: Names) -> Iterator[str]:
    """Products whose line is dashed, because it crosses a level that they lack."""
    places = {level: index for index, level in enumerate(curve.levels)}
    for product, name in names.items():
        own_places = [places[level] for level in curve.points.get(product, {})]
        if own_places and max(own_places) - min(own_places) >= len(own_places):
            yield name


def ladder_chart(ladder: Ladder, names: Names, colours: Colours) -> BenchChart:
    metrics = [metric for metric, _ in ladder.steps]
    return BenchChart(
        x_label="Percentile",
        y_label="Latency",
        shown_as="latency",
        logarithmic=True,
        levels=tuple(BenchLevel(text=metric.short, number=None) for metric in metrics),
        series=tuple(
            BenchSeries(colour=colours[product], name=name, points=tuple(_steps(ladder, index)))
            for index, (product, name) in enumerate(names.items())
        ),
        ceilings=(),
    )


def _steps(ladder: Ladder, product: int) -> Iterator[BenchPoint]:
    for level, (metric, summaries) in enumerate(ladder.steps):
        summary = summaries[product]
        if summary and summary.mean > 0:
            yield _point(level, summary, metric)


def ladder_table(ladder: Ladder) -> ChartTable:
    """With n where a percentile is of fewer repeats than others of the product: it may then be below a lower one."""
    values = [summary.mean for _, summaries in ladder.steps for summary in summaries if summary]
    factor, unit = unit_of(ladder.steps[0][0], [min(values, default=0.0)])
    columns = zip(*(summaries for _, summaries in ladder.steps), strict=True)
    most = [max((summary.n for summary in column if summary), default=0) for column in columns]

    def text(metric: Metric, summary: Summary | None, n: int) -> str:
        if summary is None:
            return Missing.NO_VALUE if n else Missing.NOT_MEASURED
        return value_text(summary.mean, factor, metric) + (f" (n = {summary.n})" if summary.n < n else "")

    rows = [
        TableRow(metric.short, tuple(text(metric, summary, n) for summary, n in zip(summaries, most, strict=True)))
        for metric, summaries in ladder.steps
    ]
    return ChartTable("Latency percentiles", ladder.title, "Percentile", unit, tuple(rows))


def time_chart(over_time: OverTime) -> BenchChart:
    """One series for each target; a level is a run."""
    metric, known, colours = over_time.panel.metric, _runs(over_time), colours_of(over_time.values)
    places = {run: index for index, run in enumerate(known)}
    return BenchChart(
        x_label="Run",
        y_label=metric.label,
        shown_as=metric.shown_as,
        logarithmic=False,
        levels=tuple(BenchLevel(text=f"{run} · {localtime(at):%Y-%m-%d}", number=None) for run, at in known.items()),
        series=tuple(
            BenchSeries(
                colour=colours[target],
                name=target,
                points=tuple(_point(places[value.run], value.summary, metric) for value in values),
            )
            for target, values in over_time.values.items()
        ),
        ceilings=(),
    )


def _runs(over_time: OverTime) -> dict[str, datetime]:
    """Oldest first."""
    at = {value.run: value.at for values in over_time.values.values() for value in values}
    return dict(sorted(at.items(), key=lambda item: item[1]))


def time_table(over_time: OverTime, words: str) -> ChartTable:
    known = {(target, value.run): value.summary.mean for target, values in over_time.values.items() for value in values}
    factor, unit = unit_of(over_time.panel.metric, list(known.values()))
    rows = [
        TableRow(
            f"{run[:1].upper() + run[1:] if run.startswith('i') else f'Run {run}'}, {localtime(at):%Y-%m-%d}",
            tuple(
                value_text(known[target, run], factor, over_time.panel.metric) if (target, run) in known else ""
                for target in over_time.values
            ),
        )
        for run, at in _runs(over_time).items()
    ]
    return ChartTable(f"{over_time.title} over time", words, "Run", unit, tuple(rows))
