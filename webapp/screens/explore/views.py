"""The page Explore. Its address contains the whole query."""

from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.analysis.comparing import Selected, for_latencies
from webapp.analysis.latency import chart_point, chart_points
from webapp.analysis.question import KEYS, VIEWS, Pairs, ViewOptions, read_options, split
from webapp.analysis.timeline import Span, time_lines
from webapp.analysis.trial_metrics import metrics_of
from webapp.core.errors import Refusal
from webapp.core.parameters import read_number
from webapp.imports.measurement import MAX_RUNTIME_MS
from webapp.results.reading.content import Point
from webapp.results.reading.points import points_of
from webapp.results.reading.query import ResultQuery
from webapp.screens.access import page, person
from webapp.screens.explore.answer import answer_of
from webapp.screens.explore.form import form_of
from webapp.screens.explore.resolve import resolved
from webapp.screens.explore.revision import Fitted, fitted
from webapp.screens.explore.saved import opened
from webapp.screens.explore.shown import shown
from webapp.screens.results.picks import lenient_filter, pairs_of


@page
def explore_page(request: HttpRequest) -> HttpResponse:
    pairs = pairs_of(request.GET)
    try:
        found = resolved(pairs)
        if found.fitted.pairs != pairs:
            return _redirect(request, found.fitted)
        if found.selected is None:
            context = {"form": form_of(pairs, options=found.options), "options": found.options, "empty": True}
        else:
            kept = opened(found.options.saved, pairs, person(request))
            context = _context(pairs, found.options, found.selected) | {"kept": kept}
        return render(request, "screens/explore.html", context)
    except Refusal as refusal:
        return _refused(request, refusal)


@page
def explore_timeline(request: HttpRequest) -> HttpResponse:
    """The time lines of the seconds `from` to `to` as JSON, for a zoom into the chart."""
    try:
        span = _span(request.GET)
        found = resolved(pairs_of(request.GET, "from", "to"))
        if found.selected is None or not found.selected.rows:
            return HttpResponse("Nothing was measured there.", status=404, content_type="text/plain")
        point = chart_point(found.selected, found.options.chart_point)
        lines = time_lines(point, found.selected.query.metric, span)
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    return HttpResponse(msgspec.json.encode(lines), content_type="application/json")


def _span(address: QueryDict) -> Span:
    """Raises Refusal."""
    from_s, to_s = (read_number(name, address.get(name, ""), high=MAX_RUNTIME_MS // 1000) for name in ("from", "to"))
    if from_s >= to_s:
        raise Refusal("value_refused", "from must be smaller than to.")
    return Span(from_s, to_s)


def _redirect(request: HttpRequest, fit: Fitted) -> HttpResponse:
    if fit.dropped:
        messages.info(request, fit.sentence)
    return redirect(f"{reverse('explore')}?{urlencode(fit.pairs)}")


def _refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The message, and the form for another choice."""
    fit = fitted(pairs_of(request.GET))
    if fit.pairs != pairs_of(request.GET):
        return _redirect(request, fit)
    options = read_options(fit.pairs)
    form = form_of(fit.pairs, options=options, all_points=_offered(fit.pairs))
    context = {"refusal": str(refusal), "form": form, "options": options}
    status = 200 if refusal.code == "compare_too_many" else 422  # a valid query with too many results
    return render(request, "screens/explore.html", context, status=status)


def _offered(pairs: Pairs) -> list[Point]:
    """The points to choose from if the comparison was refused."""
    asked = lenient_filter([pair for pair in split(pairs)[0] if pair[0] not in KEYS])
    return points_of(ResultQuery.of(asked).without_factors())


def _context(pairs: Pairs, options: ViewOptions, selected: Selected) -> dict[str, object]:
    answer = answer_of(selected, options)
    names = {series.key: series.name for panel in answer.comparison.panels for series in panel.series}
    form = form_of(
        pairs,
        options=options,
        all_points=points_of(selected.found.without_factors()),
        rows=selected.rows,
        metrics=metrics_of(selected.read),
        baselines=names,
        chart_points=chart_points(for_latencies(selected) if options.view == "latency" else selected),
    )
    return {"form": form, "views": VIEWS} | shown(answer, options, selected.query.ratios)
