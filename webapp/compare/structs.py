"""A comparison, ready to be drawn and tabled. Values are in the metric's stored unit: 1/s, B/s, ns."""

from enum import StrEnum

import msgspec


class DifferenceKind(StrEnum):
    CONFOUNDED = "confounded"  # differs between series besides what makes the series
    POOLED = "pooled"  # takes several levels inside one cell: the mean is over them
    FOLLOWS = "follows"  # differs between series because it goes along with what makes the series
    ALONG_X = "along_x"  # changes together with x, alike in every series


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts of a comparison."""


class Difference(Struct, frozen=True, kw_only=True):
    kind: DifferenceKind
    name: str  # of a factor or of a fact of the configuration
    label: str
    text: str  # a sentence


class AxisLevel(Struct, frozen=True, kw_only=True):
    key: str  # as in an address
    text: str
    value: float | None  # None where the level is no number


class RatioCell(Struct, frozen=True, kw_only=True):
    """Against the baseline's cell at the same place; `low` to `high`: 95 % confidence interval, None without one."""

    value: float
    low: float | None
    high: float | None
    resolved: bool  # the interval leaves out 1
    better: bool | None  # than the baseline, where resolved
    text: str  # ×2.60 or −38 %, the same form in the whole column
    interval_text: str  # ×2.41 to ×2.80, "" without an interval


class Cell(Struct, frozen=True, kw_only=True):
    """The repeats of one series at one place on x. One value: no sd, no interval."""

    level: int  # index into the comparison's levels
    values: tuple[float, ...]
    n: int
    mean: float
    sd: float | None
    ci95_low: float | None
    ci95_high: float | None
    low: float
    high: float
    text: str  # the mean as people read it
    spread_text: str  # ± half the interval, with its unit; "one repeat" without one
    doubts: tuple[str, ...]  # why this number is not to be trusted as it stands; mostly none
    ratio: RatioCell | None


class Series(Struct, frozen=True, kw_only=True):
    key: str  # to be named as the baseline
    name: str
    is_baseline: bool
    points: tuple[Cell, ...]
    sentence: str  # what the numbers say against the baseline; "" for the baseline itself
    overall: RatioCell | None  # geometric mean over all places that both have


class Panel(Struct, frozen=True, kw_only=True):
    """One chart."""

    key: str
    name: str  # "" where there is only one
    series: tuple[Series, ...]


class Comparison(Struct, frozen=True, kw_only=True):
    metric: str
    metric_label: str
    shown_as: str
    unit: str
    lower_is_better: bool
    x: str
    x_label: str
    x_numeric: bool
    series_by: tuple[str, ...]
    series_label: str
    panel_label: str
    levels: tuple[AxisLevel, ...]
    panels: tuple[Panel, ...]
    baseline: str  # key of the series that the others are held against
    ratio_as: str  # ratio | percent: how the column of ratios is written
    verdict: str  # single-factor, or confounded by … : what the differences amount to
    single_factor: bool
    differs: tuple[Difference, ...]
    notes: tuple[str, ...]
    results: int  # that were compared
