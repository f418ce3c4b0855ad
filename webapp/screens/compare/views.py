"""Compare: what is on x, what makes a line, against what; the address holds all of it."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.compare.dimensions import DIMENSIONS
from webapp.compare.query import KEYS, CompareQuery, read_query
from webapp.compare.selectors import compare
from webapp.compare.structs import Comparison
from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS
from webapp.results.filters import FACTOR_PREFIX, ResultFilter, read_filter
from webapp.results.metrics import METRICS
from webapp.screens import points
from webapp.screens.access import page
from webapp.screens.compare.charts import charts_of, table_of
from webapp.screens.compare.defaults import choose_places
from webapp.screens.results.choices import (
    Choice,
    Option,
    Point,
    factor_choices,
    pairs_of,
    place_choices,
    points_by_target,
    points_of,
)

PLACES = ("host", "target", "run", "plan", "direction")
SENTENCES_SHOWN = 12


@page
def compare_page(request: HttpRequest) -> HttpResponse:
    try:
        if not request.GET.get("x"):
            return _with_defaults(request)
        query = read_query(pairs_of(request.GET))
        return render(request, "screens/compare.html", _context(query, compare(query)))
    except Refusal as refusal:
        context = {"refusal": str(refusal), "choices": place_choices(ResultFilter())}
        return render(request, "screens/compare.html", context, status=400)


def _with_defaults(request: HttpRequest) -> HttpResponse:
    """To the address of a comparison that makes sense for the chosen results."""
    asked = read_filter(pairs_of(request.GET, *KEYS))
    by_target = points_by_target(asked)
    if not by_target:
        return render(request, "screens/compare.html", {"choices": place_choices(asked), "empty": True})
    chosen = choose_places(by_target)
    pairs = pairs_of(request.GET, "x")
    if chosen.target:
        pairs.append(("target", chosen.target))
    pairs += [("x", chosen.x), ("series", chosen.series), ("panel", chosen.panel)]
    pairs += [(f"{FACTOR_PREFIX}{name}", FACTORS[name].write(level)) for name, level in chosen.fixed.items()]
    return redirect(f"{reverse('compare')}?{urlencode([(key, value) for key, value in pairs if value])}")


def _context(query: CompareQuery, comparison: Comparison) -> dict[str, object]:
    all_points = points_of(query.results)
    sentences = [
        (panel.name, series.sentence) for panel in comparison.panels for series in panel.series if series.sentence
    ]
    return {
        "comparison": comparison,
        "payload": msgspec.to_builtins(charts_of(comparison)),
        "rows": table_of(comparison),
        "sentences": sentences[:SENTENCES_SHOWN],
        "axes": _axes(query, comparison, all_points),
        "choices": [*place_choices(query.results), *factor_choices(all_points, query.results)],
        "invalid": query.results.invalid,
    }


def _axes(query: CompareQuery, comparison: Comparison, all_points: Sequence[Point]) -> list[Choice]:
    """The selects of x, series, panel, metric and baseline."""
    names = [*(name for name in points.varying(all_points) if name in DIMENSIONS), *PLACES]
    metrics = tuple(Option(key, metric.label, key == query.metric) for key, metric in METRICS.items())
    known = {series.key: series.name for panel in comparison.panels for series in panel.series}
    baselines = tuple(Option(key, name, key == comparison.baseline) for key, name in known.items())
    return [
        Choice("metric", "Metric", metrics),
        _dimension("x", "On the x axis", names, query.x),
        _dimension("series", "A line for each", names, ",".join(query.series)),
        _dimension("panel", "A chart for each", names, query.panel),
        Choice("baseline", "Baseline", baselines),
    ]


def _dimension(key: str, label: str, names: Sequence[str], chosen: str) -> Choice:
    """What is chosen is offered too, also where it does not vary or is several factors in one."""
    offered = dict.fromkeys([*([chosen] if chosen else []), *names])
    options = tuple(Option(name, _dimension_label(name), name == chosen) for name in offered)
    return Choice(key, label, options)


def _dimension_label(name: str) -> str:
    return ", ".join(DIMENSIONS[part].label if part in DIMENSIONS else part for part in name.split(","))
