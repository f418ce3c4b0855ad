"""The page Explore. Its address contains the whole query."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.db.models import Min
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.analysis.answer import Comparison, comparison_table
from webapp.analysis.comparing import Selected, compare, comparison_of, for_latencies
from webapp.analysis.dimensions import (
    ATTRIBUTES,
    DIGEST_SHOWN,
    DIMENSIONS,
    MATCHED,
    PART,
    dimension,
    known_dimension,
    label_of,
    varying_parts,
)
from webapp.analysis.equals import HOST, PLACES_OF_DRIVES, equal_places, places_of
from webapp.analysis.latency import chart_point, chart_points
from webapp.analysis.question import (
    AGAINST,
    AXES,
    CEILINGS,
    CELLS,
    CHARTS,
    KEYS,
    LINES,
    MARGIN,
    MAX_SERIES_FACTORS,
    OPTION_KEYS,
    RATIOS,
    SCALES,
    SHARES,
    VIEWS,
    CompareQuery,
    Pairs,
    ViewOptions,
    read_options,
    read_query,
    split,
)
from webapp.analysis.seals import scopes_of
from webapp.analysis.timeline import Span, time_lines
from webapp.analysis.trial_metrics import COMPARED, known_metric, metrics_of
from webapp.core.answers import Question, answered
from webapp.core.errors import Refusal, read_number
from webapp.core.table_files import file_response
from webapp.imports.measurement import MAX_RUNTIME_MS
from webapp.plans.factors import FACTORS
from webapp.plans.points import varying
from webapp.results.models import Origin
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACT_PREFIX, FACTOR_PREFIX, ResultFilter
from webapp.results.reading.filter import KEYS as FILTER_KEYS
from webapp.results.reading.query import ResultQuery, points_of
from webapp.results.reading.rows import ResultRow
from webapp.screens.access import page, person
from webapp.screens.bench.address import bench_of_series
from webapp.screens.choices import Choice, Group, Option, options_of
from webapp.screens.explore.answer import Answer, answer_of
from webapp.screens.explore.pictures import explore_drawing
from webapp.screens.explore.resolve import TABLE, TABLE_LABEL, resolved, with_defaults
from webapp.screens.explore.revision import BEFORE, before_of, fitted
from webapp.screens.explore.saved import opened
from webapp.screens.explore.shown import sentences_of, shown
from webapp.screens.findings import as_heading
from webapp.screens.results.picks import (
    Pick,
    attribute_picks,
    configuration_pick,
    factor_picks,
    lenient_filter,
    pairs_of,
)

# The form above a comparison: results, axes, display options. It is also shown for an address that was refused, so
# that people can correct it.

OFFERED_MARGINS = {"": f"±{100 * MARGIN:g} %", "1": "±1 %", "2": "±2 %", "10": "±10 %", "20": "±20 %"}


@dataclass(frozen=True)
class CompareForm:
    axes: tuple[Choice, ...]
    display: tuple[Choice, ...]  # beside the axes
    more: tuple[Choice, ...]  # behind “Display”
    more_chosen: bool  # one of `more` is not the default
    picks: tuple[Pick, ...]
    invalid: bool
    references: bool
    hidden: tuple[tuple[str, str], ...]
    before: str  # for `revision`: sent with the form and with the links of the page


def form_of(
    pairs: Pairs,
    *,
    options: ViewOptions,
    all_points: Sequence[Point] = (),
    rows: Sequence[ResultRow] = (),
    metrics: Collection[str] | None = None,
    baselines: Mapping[str, str] | None = None,
    chart_points: Mapping[str, str] | None = None,
) -> CompareForm:
    """`metrics`: the keys of those that the results have; None if unknown, which offers all. `baselines` and
    `chart_points`: key -> name of the existing series and chart points."""
    result_filter = lenient_filter([pair for pair in pairs if pair[0] not in (*KEYS, *OPTION_KEYS)])
    configurations = configuration_pick((row.configuration for row in rows), result_filter, DIGEST_SHOWN)
    varied, before = varying(all_points), before_of(pairs)
    more = _more(pairs, options)
    is_latency = options.view == "latency"  # of all I/Os, whatever the metric is
    metric = next((value for key, value in reversed(pairs) if key == "metric" and value), "iops")
    offered = None if is_latency else _select("metric", "Metric", _metrics(metrics, metric), metric)
    lines = {str(point.get("layout") or "") for point in all_points} | {row.layout for row in rows}
    return CompareForm(
        axes=_axes(pairs, _dimensions(varied, rows, lines), offered, baselines or {}),
        display=_display(options, chart_points or {}),
        more=more,
        more_chosen=any(key == choice.name and value for key, value in pairs for choice in more),
        picks=(configurations, *factor_picks(all_points, result_filter, varied=varied)),
        invalid=result_filter.invalid,
        references=result_filter.references,
        hidden=(
            (BEFORE, before),
            *((("metric", metric),) if is_latency else ()),
            *((key, getattr(options, key)) for key in ("view", "saved") if getattr(options, key)),
        ),
        before=before,
    )


def _given(pairs: Pairs, key: str) -> list[str]:
    return [name.strip() for k, value in pairs if k == key for name in value.split(",") if name.strip()]


def _axes(
    pairs: Pairs,
    groups: Sequence[Group],
    metric: Choice | None,
    baselines: Mapping[str, str],
) -> tuple[Choice, ...]:
    baseline = next((value for key, value in reversed(pairs) if key == "baseline"), "")
    panel = (_given(pairs, "panel") or [""])[-1]
    return (
        *([metric] if metric else []),
        _dimension("x", "x axis", groups, (_given(pairs, "x") or [""])[-1]),
        *_series(groups, _given(pairs, "series")[:MAX_SERIES_FACTORS]),
        _dimension("panel", "One chart per", groups, panel, nothing="–"),
        _select("baseline", "Baseline", {"": "automatic", **baselines}, baseline),
    )


def _metrics(known: Collection[str] | None, chosen: str) -> dict[str, str]:
    """Labels by key: those of `known`, and the chosen metric also without values."""
    keys = COMPARED if known is None else [*(key for key in COMPARED if key in known), *sorted({*known} - {*COMPARED})]
    labels = {key: metric.label for key in keys if (metric := known_metric(key))}
    if chosen not in labels and (metric := known_metric(chosen)):
        labels[chosen] = f"{metric.label} (no values)"
    return labels


def _series(groups: Sequence[Group], chosen: Sequence[str]) -> list[Choice]:
    """One select for each series factor, plus an empty one."""
    labels = ("One series per", "and per", "and per")
    slots = min(MAX_SERIES_FACTORS, len(chosen) + 1)
    given = [*chosen, ""][:slots]
    return [
        _dimension("series", labels[n], groups, name, nothing="–", id_=f"id-series{n or ''}")
        for n, name in enumerate(given)
    ]


def _dimension(
    key: str, label: str, groups: Sequence[Group], chosen: str, *, nothing: str = "", id_: str = ""
) -> Choice:
    """The chosen dimension is always an option, even if it does not vary or is unknown."""
    offered = {option.value for group in groups for option in group.options}
    more = [Group("", (_option(chosen, chosen),))] if chosen and chosen not in offered else []
    marked = [Group(g.label, tuple(Option(o.value, o.text, o.value == chosen) for o in g.options)) for g in groups]
    return Choice(id_ or f"id-{key}", key, label, (*more, *marked), nothing)


def _option(name: str, chosen: str) -> Option:
    known = dimension(name)
    return Option(name, known.label if known else name, name == chosen)


def _dimensions(varied: Sequence[str], rows: Sequence[ResultRow], lines: Collection[str]) -> list[Group]:
    """Factors that vary, parts of layouts that differ, attributes, and facts that differ between the observed
    configurations."""
    factors = [name for name in varied if name in DIMENSIONS]
    facts = [f"{FACT_PREFIX}{name}" for name in _differing_facts(rows)]
    parts = varying_parts(lines)
    named = (("Factors that vary", factors), ("Layout", parts), ("Attributes", ATTRIBUTES), ("Observed", facts))
    return [Group(label, tuple(_option(name, "") for name in names)) for label, names in named if names]


def _differing_facts(rows: Sequence[ResultRow]) -> list[str]:
    known = list({(row.configuration, row.stream): row.facts for row in rows}.values())
    names = sorted({name for facts in known for name in facts})
    return [name for name in names if len({facts.get(name, "") for facts in known}) > 1]


def _select(name: str, label: str, texts: Mapping[str, str], chosen: str) -> Choice:
    return Choice(f"id-{name}", name, label, (Group("", options_of(texts.items(), chosen)),))


def _display(options: ViewOptions, chart_points: Mapping[str, str]) -> tuple[Choice, ...]:
    """The choice that decides what the view shows."""
    if options.view == "means":
        against = _select("against", "Second metric", AGAINST, options.against)
        return (
            _select("chart", "Chart type", CHARTS, options.chart),
            *((against,) if options.chart == "scatter" else ()),
        )
    return (_select("chart_point", "At", {"": "automatic", **chart_points}, options.chart_point),)


def _more(pairs: Pairs, options: ViewOptions) -> tuple[Choice, ...]:
    """Only the options that change the view."""
    ratios = _select("ratios", "Ratio format", RATIOS, (_given(pairs, "ratios") or [""])[-1])
    chosen = (_given(pairs, "margin") or [""])[-1]
    margins = {**OFFERED_MARGINS, **({} if chosen in OFFERED_MARGINS else {chosen: f"±{chosen} %"})}
    margin = _select("margin", "Margin of no difference", margins, chosen)
    if options.view == "latency":
        return (_select("shares", "Share of I/Os", SHARES, options.shares), margin, ratios)
    scale = _select("scale", "Scale", SCALES, options.scale)
    bandwidth = (_given(pairs, "metric") or [""])[-1] == "bytes_per_s"
    ceilings = (_select("ceilings", "Ceilings", CEILINGS, options.ceilings),) if bandwidth else ()
    if options.view == "timeline":
        return (scale, *ceilings, margin)
    if options.chart == "heat":
        return (_select("cells", "Cell values", CELLS, options.cells), margin, ratios)
    lines = () if options.chart == "scatter" else (_select("lines", "References", LINES, options.lines),)
    return (scale, _select("axis", "Value axis", AXES, options.axis), *ceilings, *lines, margin, ratios)


# A comparison as a file, in stored units.


@page
def explore_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    return _file(
        request, lambda comparison: file_response(comparison_table(comparison), "sweetspot-comparison", ending)
    )


@page
def explore_json(request: HttpRequest) -> HttpResponseBase:
    """The same shape as `GET /api/v1/compare`."""
    return _file(request, _json)


def _json(comparison: Comparison) -> HttpResponse:
    name = {"Content-Disposition": 'attachment; filename="sweetspot-comparison.json"'}
    return HttpResponse(msgspec.json.encode(comparison), content_type="application/json", headers=name)


def _file(request: HttpRequest, write: Callable[[Comparison], HttpResponseBase]) -> HttpResponseBase:
    try:
        comparison = _asked(pairs_of(request.GET))
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    if comparison is None:
        return HttpResponse("No results match.", status=404, content_type="text/plain")
    return write(comparison)


def _asked(pairs: Pairs) -> Comparison | None:
    """With the defaults of the page if x is missing; None without results. Raises Refusal for choices that do not fit:
    a file has no place to name what was dropped."""
    complete = with_defaults([pair for pair in pairs if pair[1]])
    return compare(read_query(split(complete)[0])) if complete else None


class TableLink(NamedTuple):
    """A table of an import with rows and columns of its own, or a factor that the plan of a run varies. `says`: the
    first conclusion of a table that is not shown."""

    name: str
    url: str
    shown: bool
    says: str = ""


MOST_LEVELS = 8  # of a mixture, as links; the filters have all


class LevelLinks(NamedTuple):
    """What to choose for points that cover several levels of a dimension."""

    label: str
    levels: tuple[tuple[str, str], ...]  # text and address: only the results of this level
    more: int
    others: tuple[tuple[str, str], ...]  # the dimension as charts or series, or compared only between equals


@dataclass(frozen=True)
class ExploreAnswer:
    """What the page shows of results. `pairs`: the complete address. `answer` is None without results."""

    pairs: list[tuple[str, str]]
    dropped: str  # a sentence about choices that did not fit
    options: ViewOptions
    form: CompareForm
    ratios: str = ""
    answer: Answer | None = None
    tables: list[TableLink] = field(default_factory=list)
    tables_name: str = ""
    bench: str = ""  # the address of Bench with the same products; "" without one
    level_links: list[LevelLinks] = field(default_factory=list)


def explore_answer(pairs: Pairs) -> ExploreAnswer:
    """Raises Refusal."""
    texts = tuple(text for pair in pairs for text in pair)
    return answered(Question(texts, scopes_of(_filter_of(pairs)), ExploreAnswer, partial(_answer, pairs)))


def _answer(pairs: Pairs) -> ExploreAnswer:
    chosen = resolved(pairs)
    if chosen.selected is None or chosen.fitted.pairs != pairs:
        form = form_of(pairs, options=chosen.options)
        return ExploreAnswer(chosen.fitted.pairs, chosen.fitted.sentence, chosen.options, form)
    return _of_results(pairs, chosen.options, chosen.selected)


def _heading(comparison: Comparison, options: ViewOptions) -> str:
    """The first finding or conclusion of a view of means; otherwise what the charts show."""
    if not comparison.results:
        return "No results match"
    if options.view == "means":
        claims = [finding.claim for finding in comparison.findings[:1]]
        claims += [": ".join(filter(None, conclusion)) for conclusion in sentences_of(comparison)[:1]]
        if claims:
            return as_heading(claims[0])
    shown_as = {"latency": "Latency distribution", "timeline": f"{comparison.metric_label} over time"}
    return shown_as.get(options.view, f"{comparison.metric_label} over {comparison.x_label}")


@page
def explore_page(request: HttpRequest) -> HttpResponse:
    pairs = pairs_of(request.GET)
    try:
        explored = explore_answer(pairs)
        if explored.pairs != pairs:
            return _redirect(request, explored.pairs, explored.dropped)
        context = {"form": _with_attributes(explored.form, pairs), "options": explored.options}
        if explored.answer is None:
            context["heading"] = "No results match" if request.GET else "No results yet"
            return render(request, "screens/explore.html", context | {"empty": True})
        context["heading"] = _heading(explored.answer.comparison, explored.options)
        context |= shown(explored.answer, explored.options, explored.ratios)
        context["drawing"] = explore_drawing(explored.answer, explored.options)
        context |= {
            "views": VIEWS,
            "tables": explored.tables,
            "tables_name": explored.tables_name,
            "bench": explored.bench,
        }
        context["level_links"] = explored.level_links
        context["kept"] = opened(explored.options.saved, pairs, person(request))
        return render(request, "screens/explore.html", context)
    except Refusal as refusal:
        return _refused(request, refusal)


@page
def explore_timeline(request: HttpRequest) -> HttpResponse:
    """The time lines of the seconds `from` to `to` as JSON, for a zoom into the chart."""
    try:
        span = _span(request.GET)
        chosen = resolved(pairs_of(request.GET, "from", "to"))
        if chosen.selected is None or not chosen.selected.rows:
            return HttpResponse("Nothing was measured there.", status=404, content_type="text/plain")
        point = chart_point(chosen.selected, chosen.options.chart_point)
        lines = time_lines(point, chosen.selected.query.metric, span)
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    return HttpResponse(msgspec.json.encode(lines), content_type="application/json")


def _span(address: QueryDict) -> Span:
    """Raises Refusal."""
    from_s, to_s = (read_number(name, address.get(name, ""), high=MAX_RUNTIME_MS // 1000) for name in ("from", "to"))
    if from_s >= to_s:
        raise Refusal("value_refused", "from must be smaller than to.")
    return Span(from_s, to_s)


def _redirect(request: HttpRequest, pairs: Pairs, dropped: str) -> HttpResponse:
    if dropped:
        messages.info(request, dropped)
    return redirect(f"{reverse('explore')}?{urlencode(pairs)}")


def _refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The message, and the form for another choice."""
    fit = fitted(pairs_of(request.GET))
    if fit.pairs != pairs_of(request.GET):
        return _redirect(request, fit.pairs, fit.sentence)
    options = read_options(fit.pairs)
    form = form_of(fit.pairs, options=options, all_points=_offered(fit.pairs))
    form = _with_attributes(form, fit.pairs)
    context = {"heading": "No comparison", "refusal": str(refusal), "form": form, "options": options}
    status = 200 if refusal.code == "compare_too_many" else 422  # a valid query with too many results
    return render(request, "screens/explore.html", context, status=status)


def _filter_of(pairs: Pairs) -> ResultFilter:
    """Without keys that cannot be read."""
    return lenient_filter([pair for pair in split(pairs)[0] if pair[0] not in KEYS])


def _with_attributes(form: CompareForm, pairs: Pairs) -> CompareForm:
    """They are of all results, and are read anew."""
    return replace(form, picks=(*attribute_picks(_filter_of(pairs)), *form.picks))


def _offered(pairs: Pairs) -> list[Point]:
    """The points to choose from if the comparison was refused."""
    return points_of(ResultQuery.of(_filter_of(pairs)).without_factors())


MOST_TABLES_READ = 40  # whose conclusions are beside their links


def tables_of(pairs: Pairs) -> list[TableLink]:
    """The tables of the only import that is shown, in its order; none if it has one. One query, and those of the
    comparisons of all tables the first time."""
    result_filter = _filter_of(pairs)
    if len(result_filter.imports) != 1 or result_filter.runs:
        return []
    (number,) = result_filter.imports
    origins = Origin.objects.filter(imported__number=number, other__has_key=TABLE_LABEL)
    first = origins.values("other__table").annotate(first=Min("number")).order_by("first")
    names = list(first.values_list("other__table", flat=True))
    if len(names) < 2:
        return []
    shown = result_filter.facts.get(TABLE_LABEL, ())
    links = []
    for place, name in enumerate(names):
        table_pairs = [("import", str(number)), (TABLE, name)]
        says = "" if name in shown or place >= MOST_TABLES_READ else _first_conclusion(table_pairs)
        links.append(TableLink(name, f"{reverse('explore')}?{urlencode(table_pairs)}", name in shown, says))
    return links


@dataclass(frozen=True)
class FirstConclusion:
    text: str


def _first_conclusion(pairs: Pairs) -> str:
    """Of the default comparison of a table."""
    texts = tuple(text for pair in pairs for text in pair)
    question = Question(texts, scopes_of(_filter_of(pairs)), FirstConclusion, partial(_conclude, pairs))
    return answered(question).text


def _conclude(pairs: Pairs) -> FirstConclusion:
    try:
        selected = resolved(pairs).selected
        sentences = sentences_of(comparison_of(selected)) if selected else []
    except Refusal:
        sentences = []
    return FirstConclusion(": ".join(filter(None, sentences[0])) if sentences else "")


def level_links(pairs: Pairs, selected: Selected) -> list[LevelLinks]:
    query = selected.query
    return [
        LevelLinks(
            mixture.label,
            tuple(
                (level.text, _address_of([*pairs, (_key_of(mixture.name), level.key)]))
                for level in mixture.levels[:MOST_LEVELS]
            )
            if _key_of(mixture.name)
            else (),
            max(0, len(mixture.levels) - MOST_LEVELS),
            tuple((text, _address_of(changed)) for text, changed in _other_roles(mixture.name, pairs, query)),
        )
        for mixture in selected.mixtures
    ]


def place_links(pairs: Pairs, selected: Selected) -> list[LevelLinks]:
    """The nearest comparison of series that were measured at different places: only one of the places that several of
    them share. Without such a place, drives of one model compare the hosts."""
    names = equal_places(selected.query.series)
    rows_of_series: dict[str, list[ResultRow]] = {}
    for (_, series, _), rows in selected.grouped.cells.items():
        rows_of_series.setdefault(series, []).extend(rows)
    if len({places_of(rows, names) for rows in rows_of_series.values()}) < 2:
        return []
    without = [pair for pair in pairs if pair[0] != "baseline"]
    of_drives = names == PLACES_OF_DRIVES
    for name in names if of_drives else ("model",):
        levels = _shared_levels(name, rows_of_series.values())
        if levels and (name, levels[0]) not in pairs:
            links = tuple((level, _address_of([*without, (name, level)])) for level in levels[:MOST_LEVELS])
            return [LevelLinks(label_of(name), links, max(0, len(levels) - MOST_LEVELS), ())]
    by_model: dict[str, set[str]] = {}
    for rows in rows_of_series.values():
        for row in rows:
            by_model.setdefault(row.model, set()).add(row.host)
    others = [pair for pair in without if pair[0] != "series"]
    links = tuple(
        (f"hosts with {model}", _address_of([*others, ("series", HOST), ("model", model)]))
        for model, hosts in sorted(by_model.items())
        if of_drives and model and len(hosts - {""}) > 1
    )
    return [LevelLinks(label_of(HOST), (), 0, links[:MOST_LEVELS])] if links else []


def _shared_levels(name: str, sides: Iterable[Sequence[ResultRow]]) -> list[str]:
    """The stated levels that several sides have, those of most sides first."""
    counts = Counter(level for rows in sides for level in {known_dimension(name).level(row).key for row in rows})
    return [level for level, count in counts.most_common() if level and count > 1]


def _key_of(name: str) -> str:
    """The key in an address that filters by a dimension; "" if none does."""
    if name in FILTER_KEYS or name.startswith(FACT_PREFIX):
        return name
    return f"{FACTOR_PREFIX}{name}" if name in FACTORS else ""


def _other_roles(name: str, pairs: Pairs, query: CompareQuery) -> Iterator[tuple[str, Pairs]]:
    if not query.panel:
        yield "one chart each", [*pairs, ("panel", name)]
    if len(query.series) < MAX_SERIES_FACTORS:
        without = [pair for pair in pairs if pair[0] not in ("series", "baseline")]
        yield "one series each", [*without, ("series", ",".join((*query.series, name)))]
    if query.x != MATCHED and (name in FACTORS or name in ("target", PART)):
        yield "compare only equals", [*(pair for pair in pairs if pair[0] != "x"), ("x", MATCHED)]


def _address_of(pairs: Pairs) -> str:
    return f"{reverse('explore')}?{urlencode(pairs)}"


def questions_links(selected: Selected) -> list[TableLink]:
    """A link for each factor that the plan of the only run varies; none if it varies one."""
    query = selected.query
    if len(query.results.runs) != 1:
        return []
    links: dict[str, TableLink] = {}
    for chosen in selected.matching.questions:
        address = urlencode([("run", query.results.runs[0]), *chosen.pairs])
        link = TableLink(chosen.label, f"{reverse('explore')}?{address}", ",".join(query.series) == chosen.series)
        links.setdefault(chosen.label, link)
    return list(links.values()) if len(links) > 1 else []


def _of_results(pairs: Pairs, options: ViewOptions, selected: Selected) -> ExploreAnswer:
    answer = answer_of(selected, options)
    names = {series.key: series.name for panel in answer.comparison.panels for series in panel.series}
    form = form_of(
        pairs,
        options=options,
        all_points=points_of(selected.matching.query.without_factors()),
        rows=selected.rows,
        metrics=metrics_of(selected.matching.rows),
        baselines=names,
        chart_points=chart_points(for_latencies(selected) if options.view == "latency" else selected),
    )
    tables, bench = tables_of(pairs), bench_of_series(selected.query, names)
    return ExploreAnswer(
        pairs=[*pairs], dropped="", options=options, form=form, ratios=selected.query.ratios, answer=answer,
        tables=tables or questions_links(selected), tables_name="Tables" if tables else "Factors", bench=bench,
        level_links=[*level_links(pairs, selected), *place_links(pairs, selected)],
    )  # fmt: skip
