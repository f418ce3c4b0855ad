"""The form above a comparison: results, axes, display options. It is also shown for an address that was refused, so
that people can correct it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.dimensions import ATTRIBUTES, DIGEST_SHOWN, DIMENSIONS, FACT_PREFIX, dimension, varying_parts
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
    Pairs,
    ViewOptions,
)
from webapp.analysis.trial_metrics import COMPARED, known_metric
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow
from webapp.screens import points
from webapp.screens.choices import Choice, Group, Option, options_of
from webapp.screens.explore.revision import BEFORE, before_of
from webapp.screens.results.picks import (
    Pick,
    attribute_picks,
    configuration_pick,
    factor_picks,
    lenient_filter,
)

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
    asked = lenient_filter([pair for pair in pairs if pair[0] not in (*KEYS, *OPTION_KEYS)])
    configurations = configuration_pick((row.configuration for row in rows), asked, DIGEST_SHOWN)
    varied, before = points.varying(all_points), before_of(pairs)
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
        picks=(*attribute_picks(asked), configurations, *factor_picks(all_points, asked, varied=varied)),
        invalid=asked.invalid,
        references=asked.references,
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
    labels = {key: found.label for key in keys if (found := known_metric(key))}
    if chosen not in labels and (found := known_metric(chosen)):
        labels[chosen] = f"{found.label} (no values)"
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
    known = list({row.configuration: row.facts for row in rows}.values())
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
