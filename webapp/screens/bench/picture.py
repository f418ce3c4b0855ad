"""The picture of a saved comparison of products, for other pages: its curves, headline numbers and conclusions."""

from collections.abc import Iterator, Sequence

from django.utils import timezone

from webapp.analysis.answer import Level
from webapp.analysis.models import SavedComparison
from webapp.bench.curves import MIN_LEVELS
from webapp.core.formatting import latency
from webapp.results.metrics import METRICS
from webapp.screens.bench.charts import BenchChart
from webapp.screens.bench.report import BenchReport, ReportRow, report_to
from webapp.screens.bench.rows import ShownCell
from webapp.screens.explore.drawing import Chart, Line, Mark, levels_axis, picture, value_axis
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
    return picture(saved.title, list(_charts(report)), notes, scaled=scaled)


def _headlines(report: BenchReport) -> Iterator[str]:
    """`Random read, 4 KiB · QD 32: A 100 kIOPS; B 50 kIOPS ×0.50 (×0.49 to ×0.51).`"""
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
