"""Compare: what is on x, what makes a line, against what; the address holds all of it."""

from urllib.parse import urlencode

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.compare.dimensions import DIMENSIONS
from webapp.compare.latency import distributions
from webapp.compare.options import VIEWS, Pairs, ViewOptions, read_options, split
from webapp.compare.places import place_of, places
from webapp.compare.query import KEYS, read_query
from webapp.compare.reading import points_there, spots
from webapp.compare.scaling import scaling
from webapp.compare.selectors import Selected, comparison_of, for_latencies, select
from webapp.compare.structs import Comparison
from webapp.compare.timeline import time_lines
from webapp.core.errors import Refusal
from webapp.hosts.bounds import Bound, bounds_of
from webapp.results.filters import FACTOR_PREFIX, ResultFilter, read_filter, without_factors, write_level
from webapp.results.selectors import newest_run
from webapp.runs.models import Run
from webapp.screens.access import page, person
from webapp.screens.ceilings import in_words
from webapp.screens.compare.charts import charts_of, latency_charts, names_of, table_of, time_charts
from webapp.screens.compare.defaults import choose_for
from webapp.screens.compare.form import form_of
from webapp.screens.compare.heat import heat_of
from webapp.screens.compare.ladder import ladder_of
from webapp.screens.compare.numbers import number_rows
from webapp.screens.compare.revision import BEFORE, revised
from webapp.screens.compare.saved import opened
from webapp.screens.results.picks import Point, lenient_filter, pairs_of

SENTENCES_SHOWN = 12


@page
def compare_page(request: HttpRequest) -> HttpResponse:
    pairs = pairs_of(request.GET)
    if BEFORE in request.GET:
        return redirect(f"{reverse('compare')}?{urlencode(revised(pairs))}")
    options = ViewOptions()
    try:
        options = read_options(pairs)
        if not request.GET.get("x"):
            return _with_defaults(request, pairs, options)
        selected = select(read_query(split(pairs)[0]))
        kept = opened(options.saved, pairs, person(request))
        return render(request, "screens/compare.html", _context(pairs, options, selected) | {"kept": kept})
    except Refusal as refusal:
        form = form_of(pairs, options=options, all_points=_offered(pairs))
        context = {"refusal": str(refusal), "form": form, "options": options}
        status = 200 if refusal.code == "compare_too_many" else 400  # a choice that makes sense, of too much
        return render(request, "screens/compare.html", context, status=status)


def _offered(pairs: Pairs) -> list[Point]:
    """The points to choose from where the comparison itself was refused."""
    asked = lenient_filter([pair for pair in split(pairs)[0] if pair[0] not in KEYS])
    return points_there(without_factors(asked))


def _with_defaults(request: HttpRequest, pairs: Pairs, options: ViewOptions) -> HttpResponse:
    """To the address of a comparison that makes sense for the chosen results; of the newest run if none are chosen."""
    compared, shown = split([pair for pair in pairs if pair[1]])
    asked = read_filter([pair for pair in compared if pair[0] not in KEYS])
    newest = newest_run() if asked == ResultFilter() else None
    if newest is not None:
        compared = [*compared, ("run", str(newest))]
        asked = ResultFilter(runs=(newest,))
    found = spots(asked)
    if not found:
        context = {"form": form_of(pairs, options=options), "options": options, "empty": True}
        return render(request, "screens/compare.html", context)
    taken = {name.strip() for key, text in compared if key in ("series", "panel") for name in text.split(",")}
    chosen = choose_for([spot.without(taken) for spot in found])
    axes = [("x", next(name for name in (chosen.x, *DIMENSIONS) if name not in taken))]
    axes += [(key, name) for key, name in (("series", chosen.series), ("panel", chosen.panel)) if name not in taken]
    made = [("target", chosen.target), *axes]
    made += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in chosen.fixed.items()]
    given = {key for key, _ in compared}
    added = [pair for pair in made if pair[1] and pair[0] not in given]
    return redirect(f"{reverse('compare')}?{urlencode([*compared, *added, *shown])}")


def _context(pairs: Pairs, options: ViewOptions, selected: Selected) -> dict[str, object]:
    comparison = comparison_of(selected)
    placed = for_latencies(selected) if options.view == "latency" else selected
    offered = points_there(without_factors(selected.query.results))
    names = {series.key: series.name for panel in comparison.panels for series in panel.series}
    context = {
        "comparison": comparison,
        "form": form_of(
            pairs, options=options, all_points=offered, rows=selected.rows, baselines=names, spots=places(placed)
        ),
        "options": options,
        "views": VIEWS,
        "sentences": _sentences(comparison),
        "names": msgspec.to_builtins(names_of(comparison)),
    }
    return context | (_MADE[options.view](comparison, options, placed) if selected.rows else {})


def _sentences(comparison: Comparison) -> list[tuple[str, str]]:
    said = scaling(comparison)
    said += [(panel.name, series.sentence) for panel in comparison.panels for series in panel.series if series.sentence]
    return said[:SENTENCES_SHOWN]


def _wants_ceilings(options: ViewOptions, selected: Selected) -> bool:
    return bool(options.ceilings) and selected.metric.key == "bytes_per_s"


def _ceilings(options: ViewOptions, selected: Selected) -> tuple[Bound, ...]:
    """Of the targets whose throughput is shown, as their hosts were when the newest of the runs began."""
    if not _wants_ceilings(options, selected):
        return ()
    runs = {row.run for row in selected.rows}
    began = {run.number: run.started_at or run.created_at for run in Run.objects.filter(number__in=runs)}
    return bounds_of({row.target: began[row.run] for row in sorted(selected.rows, key=lambda row: began[row.run])})


def _means(comparison: Comparison, options: ViewOptions, selected: Selected) -> dict[str, object]:
    heat = heat_of(comparison, ratios=options.cells == "ratio") if options.chart == "heat" else None
    bounds = _ceilings(options, selected)
    return {
        "ceilings_shown": _wants_ceilings(options, selected),
        "ceilings": in_words(bounds),
        "payload": msgspec.to_builtins(charts_of(comparison, options, bounds)),
        "rows": number_rows(table_of(comparison), with_panel=bool(comparison.panel_label)),
        "heat": heat,
    }


def _latency(_: Comparison, options: ViewOptions, selected: Selected) -> dict[str, object]:
    place = place_of(selected, options.spot)
    found = distributions(place)
    return {
        "payload": msgspec.to_builtins(latency_charts(found, options)),
        "place": place,
        "distributions": found,
        "ladder": ladder_of(found, selected.query.ratios),
    }


def _timeline(_: Comparison, options: ViewOptions, selected: Selected) -> dict[str, object]:
    place = place_of(selected, options.spot)
    lines = time_lines(place, selected.query.metric)
    bounds = _ceilings(options, selected)
    return {
        "ceilings_shown": _wants_ceilings(options, selected),
        "ceilings": in_words(bounds),
        "payload": msgspec.to_builtins(time_charts(lines, options, bounds)),
        "place": place,
        "lines": lines,
    }


_MADE = {"means": _means, "latency": _latency, "timeline": _timeline}
