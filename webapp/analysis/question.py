"""The question of a comparison: results, x, series, metric, baseline, and the display options in its address.

x=iodepth&series=ioengine&panel=pattern&metric=iops&baseline=io_uring&ratios=percent&margin=5&run=17&factor.block_size=4k
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from webapp.analysis.dimensions import ATTRIBUTES, MATCHED, dimension, label_of
from webapp.analysis.trial_metrics import COMPARED, known_metric
from webapp.core.errors import Refusal, nearest
from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import ResultFilter, read_filter

# Display options of a comparison, and their form in an address.
#
# view=latency&chart=heat&against=latency_p99&cells=ratio&scale=log&axis=shared&ceilings=on&lines=published
# &chart_point=32

VIEWS = {"means": "Means", "latency": "Latency distribution", "timeline": "Time line"}
CHARTS = {
    "": "automatic", "line": "lines", "bar": "bars", "box": "box of repeats", "scatter": "scatter", "heat": "heat map",
}  # fmt: skip
AGAINST = {"": "automatic", **{metric.key: metric.label for metric in COMPARED.values()}}
SCALES = {"": "linear, from zero", "log": "logarithmic"}
AXES = {"": "one per chart", "shared": "shared by all charts"}
CELLS = {"": "values", "ratio": "ratios to the baseline"}
RATIOS = {"": "automatic", "ratio": "factors: ×2.60", "percent": "percent: −38 %"}
CEILINGS = {"": "hidden", "on": "for each target"}
LINES = {"": "hidden", "published": "published", "baseline": "baseline runs", "all": "both"}
SHARES = {"": "nines: 90, 99, 99.9 %", "linear": "linear, 0 to 100 %"}

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ViewOptions:
    """Each is a key of its table above, `chart_point` a key of `analysis.latency`, `saved` an id."""

    view: str = "means"
    chart: str = ""
    against: str = ""  # the second metric of a scatter chart
    scale: str = ""
    axis: str = ""
    cells: str = ""
    shares: str = ""
    ceilings: str = ""
    lines: str = ""  # references beside the series
    chart_point: str = ""
    saved: str = ""


_KNOWN = {
    "view": VIEWS, "chart": CHARTS, "against": AGAINST, "scale": SCALES, "axis": AXES, "cells": CELLS, "shares": SHARES,
    "ceilings": CEILINGS, "lines": LINES,
}  # fmt: skip
OPTION_KEYS = (*_KNOWN, "chart_point", "saved")


def read_options(pairs: Iterable[tuple[str, str]]) -> ViewOptions:
    """From the pairs of an address; other keys are ignored. Raises Refusal with the known values."""
    given = {key: value for key, value in pairs if key in OPTION_KEYS and value}
    for key, known in _KNOWN.items():
        if key in given and given[key] not in known:
            names = ", ".join(name for name in known if name)
            raise Refusal("compare_view_unknown", f"{key}={given[key]} is unknown. Use {names}.")
    return ViewOptions(**given)


def split(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Pairs of the query, and pairs of the display options."""
    return [p for p in pairs if p[0] not in OPTION_KEYS], [p for p in pairs if p[0] in OPTION_KEYS]


MAX_SERIES_FACTORS = 3
KEYS = ("x", "series", "panel", "metric", "baseline", "ratios", "margin")
RATIO_FORMS = ("ratio", "percent")
MARGIN, MARGINS = 0.05, (0.1, 50.0)  # the margin unless another is chosen; the allowed ones in percent


class CompareRefused(Refusal):
    """The query cannot be answered."""


@dataclass(frozen=True)
class CompareQuery:
    """`x`, `series` and `panel` name dimensions: factors, attributes such as host or drive, facts (`fact.<name>`)."""

    x: str
    series: tuple[str, ...] = ()
    panel: str = ""  # one chart per level; "" for one chart
    metric: str = "iops"
    baseline: str = ""  # key of a series; "" for the first
    ratios: str = ""  # form of ratios: ratio | percent; "" for automatic
    margin: float = MARGIN  # differences below it count as none: 0.05 is ±5 %
    results: ResultFilter = field(default_factory=ResultFilter)
    by_direction: bool = False  # one chart per direction; set by `analysis.comparing`, not by an address

    @property
    def panels(self) -> tuple[str, ...]:
        """The dimensions that define a chart."""
        return (*((self.panel,) if self.panel else ()), *(("direction",) if self.by_direction else ()))

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.x, *self.series, *self.panels)))


def read_query(pairs: Iterable[tuple[str, str]]) -> CompareQuery:
    """A query from the pairs of an address; several series factors are `series=ioengine,scheduler` or repeated keys.

    Raises CompareRefused or FilterRefused.
    """
    texts: dict[str, list[str]] = {key: [] for key in KEYS}
    rest = []
    for key, value in pairs:
        if key in texts:
            texts[key].append(value)
        else:
            rest.append((key, value))
    last = {key: next((value for value in reversed(values) if value), "") for key, values in texts.items()}
    return checked(
        CompareQuery(
            x=last["x"],
            series=tuple(name.strip() for text in texts["series"] for name in text.split(",") if name.strip()),
            panel=last["panel"],
            metric=last["metric"] or "iops",
            baseline=last["baseline"],
            ratios=last["ratios"],
            margin=_margin(last["margin"]),
            results=read_filter(rest),
        )
    )


def _margin(text: str) -> float:
    """`2.5` is ±2.5 %. Raises CompareRefused."""
    try:
        percent = float(text) if text else 100 * MARGIN
    except ValueError:
        percent = 0.0
    if not MARGINS[0] <= percent <= MARGINS[1]:
        message = f"margin={text} is not a margin in percent. Use a number from {MARGINS[0]} to {MARGINS[1]}."
        raise CompareRefused("compare_margin_unknown", message)
    return percent / 100


def checked(query: CompareQuery) -> CompareQuery:
    """The query itself. Raises CompareRefused if a name is unknown or used twice."""
    named = [query.x, *query.series, *([query.panel] if query.panel else [])]
    if not query.x:
        raise CompareRefused(
            "compare_x_missing", "x is missing. Choose a factor for the x axis, for example x=iodepth."
        )
    if MATCHED in named[1:]:
        message = f"{MATCHED} is only for the x axis: it is everything that neither series nor charts name."
        raise CompareRefused("compare_matched_not_x", message)
    for name in named:
        if dimension(name) is None:
            raise CompareRefused("compare_factor_unknown", _unknown(name))
    if len(query.series) > MAX_SERIES_FACTORS:
        raise CompareRefused("compare_too_many", f"Choose at most {MAX_SERIES_FACTORS} factors for series.")
    _check_twice(query)
    if known_metric(query.metric) is None:
        known = ", ".join(COMPARED)
        raise CompareRefused("compare_metric_unknown", f"There is no metric `{query.metric}`. Use {known}.")
    if query.ratios and query.ratios not in RATIO_FORMS:
        raise CompareRefused(
            "compare_ratios_unknown", f"ratios={query.ratios} is unknown. Use {' or '.join(RATIO_FORMS)}."
        )
    return query


def _check_twice(query: CompareQuery) -> None:
    used: dict[str, str] = {}
    roles = [("x", query.x), *(("series", name) for name in query.series)]
    for role, name in [*roles, *([("panel", query.panel)] if query.panel else [])]:
        if name in used:
            raise CompareRefused(
                "compare_factor_twice",
                f"{label_of(name)} is chosen for both {_ROLES[used[name]]} and {_ROLES[role]}. Change one of them.",
            )
        used[name] = role


_ROLES = {"x": "the x axis", "series": "series", "panel": "charts"}


def _unknown(name: str) -> str:
    meant = nearest(name, (*FACTORS, *ATTRIBUTES))
    return f"There is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}"
