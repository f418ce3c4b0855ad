"""What a comparison asks: which results, what is on x, what makes a series, which metric, against what.

x=iodepth&series=ioengine&panel=pattern&metric=iops&baseline=io_uring&ratios=percent&run=17&factor.block_size=4k
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from webapp.compare.dimensions import dimension, label_of
from webapp.core.errors import Refusal
from webapp.plans.factors import closest
from webapp.results.filters import ResultFilter, read_filter
from webapp.results.metrics import METRICS

MOST_SERIES_FACTORS = 3
KEYS = ("x", "series", "panel", "metric", "baseline", "ratios")
RATIO_FORMS = ("ratio", "percent")


class CompareRefused(Refusal):
    """The comparison cannot be made as asked."""


@dataclass(frozen=True)
class CompareQuery:
    """`x`, `series` and `panel` name dimensions: factors, places such as host or drive, facts (`fact.<name>`)."""

    x: str
    series: tuple[str, ...] = ()
    panel: str = ""  # one chart for each of its levels; "" for one chart
    metric: str = "iops"
    baseline: str = ""  # key of a series; "" for the first
    ratios: str = ""  # how ratios are written: ratio | percent; "" for what suits them
    results: ResultFilter = field(default_factory=ResultFilter)
    by_direction: bool = False  # a chart for each direction: never read from an address (`compare.selectors`)

    @property
    def panels(self) -> tuple[str, ...]:
        """The dimensions that make a chart."""
        return (*((self.panel,) if self.panel else ()), *(("direction",) if self.by_direction else ()))

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.x, *self.series, *self.panels)))


def read_query(pairs: Iterable[tuple[str, str]]) -> CompareQuery:
    """A query from the pairs of an address; several series factors come as `series=ioengine,scheduler` or one by one.

    Raises CompareRefused or FilterRefused naming what is wrong.
    """
    own: dict[str, list[str]] = {key: [] for key in KEYS}
    rest = []
    for key, value in pairs:
        if key in own:
            own[key].append(value)
        else:
            rest.append((key, value))
    last = {key: next((value for value in reversed(values) if value), "") for key, values in own.items()}
    return checked(
        CompareQuery(
            x=last["x"],
            series=tuple(name.strip() for text in own["series"] for name in text.split(",") if name.strip()),
            panel=last["panel"],
            metric=last["metric"] or "iops",
            baseline=last["baseline"],
            ratios=last["ratios"],
            results=read_filter(rest),
        )
    )


def checked(query: CompareQuery) -> CompareQuery:
    """The query itself. Raises CompareRefused where it names what there is not, or one thing twice."""
    named = [query.x, *query.series, *([query.panel] if query.panel else [])]
    if not query.x:
        raise CompareRefused("compare_x_missing", "Say what is to be on the x axis, e.g. x=iodepth.")
    for name in named:
        if dimension(name) is None:
            raise CompareRefused("compare_factor_unknown", _unknown(name))
    if len(query.series) > MOST_SERIES_FACTORS:
        raise CompareRefused("compare_too_many", f"A series is made by at most {MOST_SERIES_FACTORS} factors.")
    _check_twice(query)
    if query.metric not in METRICS:
        known = ", ".join(METRICS)
        raise CompareRefused("compare_metric_unknown", f"There is no metric `{query.metric}`. There are {known}.")
    if query.ratios and query.ratios not in RATIO_FORMS:
        raise CompareRefused("compare_ratios_unknown", f"ratios={query.ratios}: there are {', '.join(RATIO_FORMS)}.")
    return query


def _check_twice(query: CompareQuery) -> None:
    used: dict[str, str] = {}
    roles = [("x", query.x), *(("series", name) for name in query.series)]
    for role, name in [*roles, *([("panel", query.panel)] if query.panel else [])]:
        if name in used:
            raise CompareRefused(
                "compare_factor_twice",
                f"{label_of(name)} is both {_ROLES[used[name]]} and {_ROLES[role]}: each point would stand alone. "
                "Choose something else for one of them.",
            )
        used[name] = role


_ROLES = {"x": "on the x axis", "series": "what makes a line", "panel": "what makes a chart"}


def _unknown(name: str) -> str:
    meant = closest(name)
    return f"There is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}"
