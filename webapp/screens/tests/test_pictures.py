"""Pictures have the points of their page's payload: every mark is where its value is on the axes."""

from collections import Counter
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from django.test import Client

from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.pictures.charts import LEFT, Chart, Kind, across, chart_piece, down
from webapp.pictures.elements import SHAPES, px
from webapp.results.models import Sample
from webapp.runs.models import Run
from webapp.screens.bench.picture import bench_picture, load_picture
from webapp.screens.explore.answer import LatencyCharts, MeansCharts, ScatterCharts, TimeCharts
from webapp.screens.explore.pictures import latency_pictures, mean_pictures, scatter_pictures, time_pictures
from webapp.screens.payloads import LiveSample
from webapp.screens.runs.pictures import Seconds, seconds_pictures
from webapp.screens.tests.test_explore import run, with_histograms  # noqa: F401 - fixture
from webapp.screens.trend.charts import TrendChart, trend_picture
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db
ADDRESS = "/explore/?run=1&x=iodepth&series=ioengine&panel=pattern"
Points = Iterable[tuple[float, float]]


def area_of(chart: Chart) -> ElementTree.Element:
    return next(part for part in chart_piece(chart).parts if part.get("transform", "").startswith(f"translate({LEFT} "))


def marks_of(chart: Chart) -> Counter[tuple[str, str]]:
    """The places of all marks, in pixels."""
    area = area_of(chart)
    shapes = [part for part in area if part.get("d") in SHAPES]
    places = [part.get("transform", "").removeprefix("translate(").removesuffix(")").split() for part in shapes]
    circles = [(part.get("cx", ""), part.get("cy", "")) for part in area if part.tag == "circle"]
    return Counter([*((x, y) for x, y in places), *circles])


def places_of(chart: Chart, points: Points) -> Counter[tuple[str, str]]:
    return Counter((px(across(chart, x)), px(down(chart, y))) for x, y in points)


def vertices_of(chart: Chart) -> set[str]:
    """The places that lines go through."""
    lines = [part.get("d", "") for part in area_of(chart) if part.tag == "path" and part.get("fill") == "none"]
    return {place for line in lines for step in line.split("M") for place in step.split("L")}


def payload(client: Client, query: str) -> Any:
    return client.get(f"{ADDRESS}{query}").context["payload"]


def test_lines_of_means(viewer: Client, run: Run) -> None:  # noqa: F811
    data: MeansCharts = payload(viewer, "&chart=line")
    charts = mean_pictures(data)
    assert len(charts) == len(data.comparison.panels) == 4
    for chart, panel in zip(charts, data.comparison.panels, strict=True):
        points = [
            (data.comparison.levels[cell.level].number or 0.0, cell.summary.mean)
            for series in panel.series
            for cell in series.cells
        ]
        if all(number for number, _ in points) and len({number for number, _ in points}) > 1:
            assert marks_of(chart) == places_of(chart, points)
        assert sum(marks_of(chart).values()) == len(points)
        levels = sorted({cell.level for series in panel.series for cell in series.cells})
        assert [text for _, text in chart.x.ticks] == [data.comparison.levels[level].text for level in levels]


def test_a_single_series_has_no_legend(viewer: Client, run: Run) -> None:  # noqa: F811
    alone = viewer.get("/explore/?run=1&x=iodepth&panel=pattern&factor.ioengine=psync").context["payload"]
    assert {line.name for chart in mean_pictures(alone) for line in chart.lines} == {""}


def test_bars_have_the_heights_of_the_means(viewer: Client, run: Run) -> None:  # noqa: F811
    data: MeansCharts = payload(viewer, "&chart=bar")
    for chart, panel in zip(mean_pictures(data), data.comparison.panels, strict=True):
        tops = Counter(part.get("y") for part in area_of(chart) if part.tag == "rect")
        means = [cell.summary.mean for series in panel.series for cell in series.cells]
        assert tops == Counter(px(down(chart, mean)) for mean in means)


def test_boxes_have_a_dot_for_each_repeat(viewer: Client, run: Run) -> None:  # noqa: F811
    data: MeansCharts = payload(viewer, "&chart=box")
    for chart, panel in zip(mean_pictures(data), data.comparison.panels, strict=True):
        values = [value for series in panel.series for cell in series.cells for value in cell.summary.values]
        assert Counter(y for _, y in marks_of(chart).elements()) == Counter(px(down(chart, value)) for value in values)


def test_scatter_charts(viewer: Client, run: Run) -> None:  # noqa: F811
    context = viewer.get(f"{ADDRESS}&chart=scatter&against=latency_p99").context
    data: ScatterCharts = context["scatter"]
    for chart, panel in zip(scatter_pictures(data, context["comparison"]), data.panels, strict=True):
        points = [(point.x, point.y) for series in panel.series for point in series.points]
        assert points
        assert marks_of(chart) == places_of(chart, points)


def test_latencies(viewer: Client, run: Run) -> None:  # noqa: F811
    with_histograms(run)
    data: LatencyCharts = payload(viewer, "&view=latency")
    ladder, cumulative, violins = latency_pictures(data)
    percentiles = [
        (float(place), float(ns))
        for series in data.series
        for place, ns in enumerate(series.percentiles_ns)
        if ns is not None
    ]
    assert percentiles
    assert marks_of(ladder) == places_of(ladder, percentiles)
    assert cumulative.kind is Kind.STEPS
    for series, line in zip(data.series, cumulative.lines, strict=True):
        assert [mark.x for mark in line.marks] == list(series.cdf_ns)
    for series, line in zip(data.series, violins.lines, strict=True):
        assert sum(share for *_, share in line.slices) == pytest.approx(series.cdf_shares[-1])
        assert line.marks[0].y == series.percentiles_ns[0]


def test_time_lines(viewer: Client, run: Run) -> None:  # noqa: F811
    data: TimeCharts = payload(viewer, "&view=timeline")
    (chart,) = time_pictures(data)
    vertices = vertices_of(chart)
    found = data.lines
    for series in found.series:
        assert len(series.mean) > 1
        for values in (series.mean, *series.repeats):
            points = [(found.from_s + n * found.bin_s, value) for n, value in enumerate(values) if value is not None]
            assert {f"{x} {y}" for x, y in places_of(chart, points)} <= vertices


def test_curves_ladders_and_load_curves_of_bench(viewer: Client) -> None:
    host = a_host("storage1")
    for number, model in enumerate((SAMSUNG, INTEL)):
        lab = Lab(a_drive(host, f"nvme{number}", model=model), number=number + 1)
        for depth in (1, 4, 16):
            lab.measure(*(1000.0 * (number + 1) * depth * noise for noise in (0.99, 1.0, 1.01)), iodepth=depth)
    context = viewer.get(f"/bench/?product=model:{SAMSUNG}&product=model:{INTEL}").context
    assert len(context["charts"].charts) > 1
    for data in context["charts"].charts:
        chart = bench_picture("", data)
        x = [tick for tick, _ in chart.x.ticks]
        points = [(x[point.level], point.mean) for series in data.series for point in series.points]
        assert points
        assert marks_of(chart) == places_of(chart, points)
    for data in context["sections"].load_charts.charts:
        chart = load_picture("", data)
        points = [(point.x, point.y) for series in data.series for point in series.points]
        assert marks_of(chart) == places_of(chart, points)


def test_trends(viewer: Client) -> None:
    nights = Nights(a_version(slug="nightly"), a_target(a_host("a"), "scratch"))
    for _ in range(3):
        nights.run(1000, 4000)
    context = viewer.get("/trends/?plan=nightly&target=a/scratch").context
    data = msgspec.convert(context["chart"], TrendChart)
    chart = trend_picture(data)
    assert len(data.points) == 3
    assert marks_of(chart) == places_of(chart, [(point.at_ms / 1000, point.value) for point in data.points])


def test_samples(viewer: Client, run: Run) -> None:  # noqa: F811
    trial = Sample.objects.filter(attempt__run=run).order_by("at")[0].attempt.trial
    assert trial is not None
    context = viewer.get(f"/runs/1/trials/{trial.number}/").context
    samples = msgspec.convert(context["samples"], list[LiveSample])
    assert len(samples) > 1
    charts = seconds_pictures(Seconds(samples, ()))
    assert [chart.y.label for chart in charts][:3] == ["IOPS", "Bandwidth", "Latency"]
    for chart, field in zip(charts, ("iops", "bytes_per_s"), strict=False):
        points = [(sample.at_s, value) for sample in samples if (value := getattr(sample, field)) is not None]
        places = {f"{x} {y}" for x, y in places_of(chart, points)}
        dots = {f"{x} {y}" for x, y in marks_of(chart)}
        assert places <= vertices_of(chart) | dots


def test_pictures_of_samples_are_svg(viewer: Client, run: Run) -> None:  # noqa: F811
    for path in ("/runs/1/samples.svg", "/runs/1/trials/1/samples.svg"):
        answer = viewer.get(f"{path}?from=0&to=100000")
        assert answer["Content-Type"] == "image/svg+xml"
        texts = [each.text for each in ElementTree.fromstring(answer.content).iter() if each.tag.endswith("}text")]
        assert {"IOPS", "Bandwidth", "Latency"} <= set(texts)
        assert viewer.get(f"{path}?from=x").status_code == 422
        assert Client().get(path).status_code == 302
