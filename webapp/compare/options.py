"""How a comparison is shown, as it stands in its address beside what is compared.

view=latency&chart=heat&cells=ratio&scale=log&axis=own&ceilings=on&spot=32
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.core.errors import Refusal

VIEWS = {"means": "Means", "latency": "Latency distribution", "timeline": "Time line"}
CHARTS = {"": "automatic", "line": "lines", "bar": "bars", "heat": "heat map"}
SCALES = {"": "linear, from zero", "log": "logarithmic"}
AXES = {"": "shared", "own": "one for each chart"}
CELLS = {"": "the values", "ratio": "ratios to the baseline"}
RATIOS = {"": "automatic", "ratio": "factors: ×2.60", "percent": "per cent: −38 %"}
CEILINGS = {"": "not shown", "on": "of each target's links"}
SHARES = {"": "nines: 90, 99, 99.9 %", "linear": "linear, 0 to 100 %"}

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ViewOptions:
    """Each is a key of its table above, `spot` the key of a place on x (`panel|level`), `saved` an id."""

    view: str = "means"
    chart: str = ""
    scale: str = ""
    axis: str = ""
    cells: str = ""
    shares: str = ""
    ceilings: str = ""
    spot: str = ""
    saved: str = ""


_KNOWN = {
    "view": VIEWS, "chart": CHARTS, "scale": SCALES, "axis": AXES, "cells": CELLS, "shares": SHARES,
    "ceilings": CEILINGS,
}  # fmt: skip
OPTION_KEYS = (*_KNOWN, "spot", "saved")


def read_options(pairs: Iterable[tuple[str, str]]) -> ViewOptions:
    """From the pairs of an address, of which others are left alone. Raises Refusal naming what there is."""
    given = {key: value for key, value in pairs if key in OPTION_KEYS and value}
    for key, known in _KNOWN.items():
        if key in given and given[key] not in known:
            there = ", ".join(name for name in known if name)
            raise Refusal("compare_view_unknown", f"{key}={given[key]}: there are {there}.")
    return ViewOptions(**given)


def split(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """What is compared, and how it is shown."""
    return [p for p in pairs if p[0] not in OPTION_KEYS], [p for p in pairs if p[0] in OPTION_KEYS]
