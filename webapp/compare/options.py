"""Display options of a comparison, and their form in an address.

view=latency&chart=heat&against=latency_p99&cells=ratio&scale=log&axis=shared&ceilings=on&lines=published
&chart_point=32
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.compare.observed import COMPARED
from webapp.core.errors import Refusal

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
    """Each is a key of its table above, `chart_point` a key of `compare.chart_points`, `saved` an id."""

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
