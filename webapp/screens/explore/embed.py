"""Pictures of shared comparisons for other pages, such as a wiki: an SVG image, and a page for a frame.

Both are drawn here and need no script. The token is that of the link to the report; the frame is the only page that
other sites may embed.
"""

import math
from collections.abc import Iterator
from urllib.parse import parse_qsl

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from webapp.bench.saved import is_bench
from webapp.compare.answer import Answer, answer_to
from webapp.compare.comparison import Comparison, Panel
from webapp.compare.models import SavedComparison
from webapp.compare.observed import COMPARED
from webapp.compare.options import ViewOptions, read_options
from webapp.compare.services import linked_comparison
from webapp.core.colours import colours_of
from webapp.core.errors import Refusal
from webapp.core.formatting import latency
from webapp.results.metrics import METRICS
from webapp.screens.bench.picture import report_picture
from webapp.screens.explore.charts import sentences_of
from webapp.screens.explore.drawing import Axis, Chart, Line, Mark, levels_axis, picture, value_axis

MIN_REPEATS_OF_AXIS = 3  # as in Explore: intervals of two repeats do not set the axis
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
    charts = list(_charts(answer, read_options(parse_qsl(saved.query))))
    return picture(saved.title, charts, [*comparison.warnings, *_said(comparison), source], scaled=scaled)


def _said(comparison: Comparison) -> list[str]:
    """The first conclusions."""
    return [f"{panel}: {said}" if panel else said for panel, said in sentences_of(comparison)[:SENTENCES]]


# ---- charts


def _charts(answer: Answer, options: ViewOptions) -> Iterator[Chart]:
    """Those of the saved view. Heat maps, boxes and scatter charts are drawn as lines or bars of means."""
    logarithmic = options.scale == "log"
    if answer.lines:
        yield _over_time(answer, logarithmic=logarithmic)
    elif answer.distributions:
        yield _distribution(answer, nines=options.shares != "linear")
    elif options.view == "means":
        names = [series.name for panel in answer.comparison.panels for series in panel.series]
        for panel in answer.comparison.panels:
            yield _means(answer.comparison, panel, colours_of(names), options.chart, logarithmic=logarithmic)


def _means(comparison: Comparison, panel: Panel, colours: dict[str, int], kind: str, *, logarithmic: bool) -> Chart:
    used = sorted({cell.level for series in panel.series for cell in series.cells})
    levels = [comparison.levels[level] for level in used]
    bars = kind == "bar" or (kind != "line" and (len(levels) < 2 or any(level.number is None for level in levels)))
    x, places = levels_axis(comparison.x_label, levels, evenly=bars)
    at = dict(zip(used, places, strict=True))
    lines = tuple(
        Line(
            f"{series.name} (baseline)" if series.is_baseline else series.name,
            colours[series.name],
            tuple(
                Mark(at[cell.level], cell.summary.mean, cell.summary.low, cell.summary.high) for cell in series.cells
            ),
        )
        for series in panel.series
    )
    wide = [cell.summary for series in panel.series for cell in series.cells]
    tops = [max(one.mean, one.high or 0.0) if one.n >= MIN_REPEATS_OF_AXIS else one.mean for one in wide]
    metric = COMPARED[comparison.metric]
    y = value_axis(
        comparison.metric_label, [*tops, *(one.mean for one in wide)], metric.format, logarithmic=logarithmic
    )
    return Chart(panel.name, x, y, lines, bars=bars)


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
            tuple(Mark(found.from_s + place * found.bin_s, value) for place, value in enumerate(one.mean)),
        )
        for one in found.series
    )
    values = [mark.y for line in lines for mark in line.marks if mark.y is not None]
    x = value_axis("Time since start, s", [mark.x for line in lines for mark in line.marks], lambda value: f"{value:g}")
    y = value_axis(found.label, values, METRICS[found.metric].format, logarithmic=logarithmic)
    return Chart(answer.chart_point, x, y, lines, dots=False)
