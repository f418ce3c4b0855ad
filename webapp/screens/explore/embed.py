"""Pictures of shared comparisons for other pages, such as a wiki: an SVG image, and a page for a frame.

Both are drawn here and need no script. The token is that of the link to the report; the frame is the only page that
other sites may embed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from urllib.parse import parse_qsl

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from webapp.analysis.answer import Comparison, Panel
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import ViewOptions, read_options
from webapp.analysis.services import linked_comparison
from webapp.analysis.timeline import has_seconds
from webapp.analysis.trial_metrics import COMPARED, metric_named
from webapp.bench.saved import is_bench
from webapp.core.colours import colours_of
from webapp.core.errors import Refusal
from webapp.core.formatting import bytes_per_s, latency
from webapp.results.metrics import METRICS
from webapp.screens.bench.picture import report_picture
from webapp.screens.ceilings import drawn
from webapp.screens.explore.answer import Answer, answer_to
from webapp.screens.explore.drawing import Axis, Chart, Line, Mark, levels_axis, picture, value_axis
from webapp.screens.explore.payloads import ScatterCharts, ScatterPanel
from webapp.screens.explore.shown import sentences_of

# The charts of a picture for other pages, from what a comparison shows.

MIN_REPEATS_OF_AXIS = 3  # as in Explore: intervals of two repeats do not set the axis
MAX_NAME = 110  # characters of the name of a reference, which has a row of the legend
REACH = 3  # as in Explore: a line above this multiple of the highest value does not set the axis


def charts_of(answer: Answer, options: ViewOptions) -> list[Chart]:
    """Those of the saved view. A heat map is drawn as lines or bars of means."""
    logarithmic = options.scale == "log"
    if answer.lines:
        return [_over_time(answer, logarithmic=logarithmic)] if has_seconds(answer.lines) else []
    if options.view == "latency":
        return [_distribution(answer, nines=options.shares != "linear")] if answer.distributions else []
    if answer.scatter:
        return [_scatter(answer.scatter, panel, answer.comparison) for panel in answer.scatter.panels]
    return [_means(answer, n, options.chart, logarithmic=logarithmic) for n in range(len(answer.comparison.panels))]


def _colours(comparison: Comparison) -> Mapping[str, int]:
    return colours_of(series.name for panel in comparison.panels for series in panel.series)


def _named(name: str, *, is_baseline: bool) -> str:
    return f"{name} (baseline)" if is_baseline else name


# ---- means


def _means(answer: Answer, index: int, kind: str, *, logarithmic: bool) -> Chart:
    comparison, panel = answer.comparison, answer.comparison.panels[index]
    used = sorted({cell.level for series in panel.series for cell in series.cells})
    levels = [comparison.levels[level] for level in used]
    bars = kind == "bar" or (kind != "line" and (len(levels) < 2 or any(level.number is None for level in levels)))
    x, places = levels_axis(comparison.x_label, levels, evenly=bars or kind == "box")
    at = dict(zip(used, places, strict=True))
    extra = (*_ceilings(answer, x), *_references(answer, index, at))
    metric = metric_named(comparison.metric)
    values = _with_lines(_reach(panel, repeats=kind == "box"), extra)
    y = value_axis(comparison.metric_label, values, metric.format, logarithmic=logarithmic)
    lines = _series(panel, _colours(comparison), at, repeats=kind == "box")
    return Chart(panel.name, x, y, lines, bars=bars and kind != "box", boxes=kind == "box", extra=_visible(extra, y))


def _series(panel: Panel, colours: Mapping[str, int], at: Mapping[int, float], *, repeats: bool) -> tuple[Line, ...]:
    return tuple(
        Line(
            _named(series.name, is_baseline=series.is_baseline),
            colours[series.name],
            tuple(
                Mark(at[cell.level], one.mean, one.low, one.high, tuple(one.values) if repeats else ())
                for cell in series.cells
                for one in (cell.summary,)
            ),
        )
        for series in panel.series
    )


def _reach(panel: Panel, *, repeats: bool) -> list[float]:
    """Values that the axis must show."""
    found = [cell.summary for series in panel.series for cell in series.cells]
    if repeats:
        return [value for one in found for value in one.values]
    tops = [max(one.mean, one.high or 0.0) for one in found if one.n >= MIN_REPEATS_OF_AXIS]
    return [*tops, *(one.mean for one in found)]


def _ceilings(answer: Answer, x: Axis) -> Iterator[Line]:
    for ceiling in drawn(answer.bounds):
        name = f"Ceiling of {ceiling.text}: {bytes_per_s(ceiling.value)}"
        yield Line(name, 0, (Mark(x.low, ceiling.value), Mark(x.high, ceiling.value)))


def _references(answer: Answer, index: int, at: Mapping[int, float]) -> Iterator[Line]:
    for line in answer.references.lines if answer.references else ():
        known = [point for point in line.points if point.level in at]
        if line.panel == index and known:
            texts = dict.fromkeys((known[0].text, known[-1].text))
            marks = tuple(Mark(at[point.level], point.value) for point in known)
            yield Line(shorten(f"{line.name}: {' to '.join(texts)}", MAX_NAME, placeholder=" …"), 0, marks)


def _with_lines(values: Sequence[float], extra: Sequence[Line]) -> list[float]:
    """The values, and those of lines in reach."""
    limit = REACH * max(values, default=0.0)
    return [*values, *(mark.y for line in extra for mark in line.marks if mark.y is not None and mark.y <= limit)]


def _visible(extra: Sequence[Line], y: Axis) -> tuple[Line, ...]:
    """A line beyond the axis is only in the legend."""
    return tuple(line if all((m.y or 0.0) <= y.high for m in line.marks) else Line(line.name, 0, ()) for line in extra)


# ---- two metrics


def _scatter(charts: ScatterCharts, panel: ScatterPanel, comparison: Comparison) -> Chart:
    metric, colours = metric_named(comparison.metric), _colours(comparison)
    against = next(other for other in COMPARED.values() if other.shown_as == charts.y_shown_as)  # formats alike
    lines = tuple(
        Line(
            _named(series.name, is_baseline=series.is_baseline),
            colours[series.name],
            tuple(Mark(point.x, point.y) for point in series.points),
        )
        for series in panel.series
    )
    marks = [mark for line in lines for mark in line.marks]
    x = value_axis(charts.x_label, [mark.x for mark in marks], metric.format, logarithmic=charts.logarithmic)
    y = value_axis(charts.y_label, [mark.y or 0.0 for mark in marks], against.format, logarithmic=charts.logarithmic)
    return Chart(panel.name, x, y, lines)


# ---- other views


def _distribution(answer: Answer, *, nines: bool) -> Chart:
    colours = colours_of(one.name for one in answer.distributions)

    def place(share: float) -> float | None:
        return share if not nines else -math.log10(1 - share) if share < 1 else None

    lines = tuple(
        Line(
            one.name,
            colours[one.name],
            tuple(Mark(ns, place(share)) for ns, share in zip(one.cdf_ns, one.cdf_shares, strict=True)),
        )
        for one in answer.distributions
    )
    x = value_axis("Latency", [mark.x for line in lines for mark in line.marks], latency, logarithmic=True)
    top = max((mark.y or 0.0 for line in lines for mark in line.marks), default=1.0)
    shares = (
        [(n, 100 * (1 - 10.0**-n)) for n in range(math.ceil(top) + 1)]
        if nines
        else [(n / 5, 20.0 * n) for n in range(6)]
    )
    y = Axis("Share of I/Os", 0.0, shares[-1][0], tuple((float(at), f"{percent:.6g} %") for at, percent in shares))
    return Chart(answer.chart_point, x, y, lines, dots=False)


def _over_time(answer: Answer, *, logarithmic: bool) -> Chart:
    found = answer.lines
    assert found is not None
    colours = colours_of(one.name for one in found.series)
    lines = tuple(
        Line(
            one.name,
            colours[one.name],
            tuple(Mark(found.from_s + place * found.bin_s, value) for place, value in enumerate(line)),
        )
        for one in found.series
        for line in ((one.mean,) if one.mean else one.repeats)  # several workloads have no mean
    )
    x = value_axis("Time since start, s", [mark.x for line in lines for mark in line.marks], lambda value: f"{value:g}")
    extra = tuple(_ceilings(answer, x))
    values = [mark.y for line in lines for mark in line.marks if mark.y is not None]
    y = value_axis(found.label, _with_lines(values, extra), METRICS[found.metric].format, logarithmic=logarithmic)
    return Chart(answer.chart_point, x, y, lines, dots=False, extra=_visible(extra, y))


SENTENCES = 3
# No script, no style, nothing from anywhere: the picture is in the page.
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors {}"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address is the secret
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@require_safe
def shared_chart(_: HttpRequest, token: str) -> HttpResponse:
    """The picture for `<img>`. Unknown, revoked and deleted look the same."""
    saved = _linked(token)
    headers = {**HEADERS, "Content-Security-Policy": _POLICY.format("'none'")}
    return HttpResponse(_picture(saved), content_type="image/svg+xml", headers=headers)


@xframe_options_exempt
@require_safe
def shared_frame(request: HttpRequest, token: str) -> HttpResponse:
    """The page for `<iframe>`, whose width the picture takes."""
    saved = _linked(token)
    drawn = mark_safe(_picture(saved, scaled=True))  # noqa: S308 - every text in it is escaped
    response = render(request, "screens/shared_frame.html", {"saved": saved, "picture": drawn})
    for name, value in {**HEADERS, "Content-Security-Policy": _POLICY.format("*")}.items():
        response[name] = value
    return response


def _linked(token: str) -> SavedComparison:
    saved = linked_comparison(token)
    if saved is None:
        raise Http404
    return saved


def _picture(saved: SavedComparison, *, scaled: bool = False) -> str:
    try:
        if is_bench(saved.query):
            return report_picture(saved, scaled=scaled)
        answer = answer_to(saved)
    except Refusal as refusal:
        return picture(saved.title, (), [str(refusal)], scaled=scaled)
    at = saved.frozen_at or timezone.now()
    comparison = answer.comparison
    source = f"Sweetspot, {at:%Y-%m-%d %H:%M} UTC, {comparison.results} results. {comparison.verdict}"
    options = read_options(parse_qsl(saved.query))
    notes = [*_missing(answer, options), *comparison.warnings, *_said(comparison), source]
    return picture(saved.title, charts_of(answer, options), notes, scaled=scaled)


def _missing(answer: Answer, options: ViewOptions) -> list[str]:
    """What the picture does not show."""
    if not answer.comparison.results:
        return ["No results match any more."]
    if options.view == "latency" and not answer.distributions:
        return [f"No histogram is stored for {answer.chart_point}."]
    if answer.lines and not has_seconds(answer.lines):
        return [f"No values per second are stored for {answer.chart_point}."]
    if answer.scatter and not answer.scatter.panels:
        return [f"No result has both {answer.scatter.x_label} and {answer.scatter.y_label}."]
    if options.view == "means" and options.chart == "heat":
        return ["The saved chart is a heat map. This picture shows the same means as lines or bars."]
    return []


def _said(comparison: Comparison) -> list[str]:
    """The first conclusions, and the number of the others."""
    found = [f"{panel}: {said}" if panel else said for panel, said in sentences_of(comparison)]
    more = len(found) - SENTENCES
    left_out = [f"{more} more conclusion{'' if more == 1 else 's'} in the report."] if more > 0 else []
    return [*found[:SENTENCES], *left_out]
