"""What the comparison sends to its scripts; `frontend/src/payloads/compare.ts` checks the same shapes."""

from webapp.screens.payloads import ChartCeiling, Payload


class SeriesName(Payload, frozen=True, kw_only=True):
    """All series of a comparison in their order, so that each has one look whatever is shown of it."""

    name: str
    is_baseline: bool


class CompareLevel(Payload, frozen=True, kw_only=True):
    """One place on the x axis; `value` is None where the level is no number."""

    text: str
    value: float | None


class ComparePoint(Payload, frozen=True, kw_only=True):
    """`low` and `high` bound the mean's 95 % confidence interval; None with fewer than two repeats.

    `text` and `spread_text` are the mean and its interval as the table writes them.
    """

    level: int  # index into `levels`
    mean: float
    low: float | None
    high: float | None
    n: int
    text: str
    spread_text: str
    doubts: tuple[str, ...]  # why it is not to be trusted


class CompareSeries(Payload, frozen=True, kw_only=True):
    name: str
    is_baseline: bool
    points: tuple[ComparePoint, ...]


class ComparePanel(Payload, frozen=True, kw_only=True):
    """One chart; `name` is "" where there is only one."""

    name: str
    series: tuple[CompareSeries, ...]


class CompareCharts(Payload, frozen=True, kw_only=True):
    """`shown_as` names the formatter of the values: iops, bytes_per_s or latency (ns)."""

    x_label: str
    levels: tuple[CompareLevel, ...]
    metric_label: str
    shown_as: str
    kind: str  # auto | line | bar
    logarithmic: bool  # the axis of values
    shared: bool  # all charts have one axis of values
    ceilings: tuple[ChartCeiling, ...]
    panels: tuple[ComparePanel, ...]


class LatencySeries(Payload, frozen=True, kw_only=True):
    """`steps_ns` go with the percents; None where there are too few I/Os. The CDF: share of I/Os at most as long."""

    name: str
    is_baseline: bool
    steps_ns: tuple[int | None, ...]
    cdf_ns: tuple[int, ...]
    cdf_shares: tuple[float, ...]


class LatencyCharts(Payload, frozen=True, kw_only=True):
    """`nines`: the axis of shares counts nines, 90, 99, 99.9 %."""

    percents: tuple[float, ...]
    nines: bool
    series: tuple[LatencySeries, ...]


class TimeSeries(Payload, frozen=True, kw_only=True):
    """A value for each bin; None where there is none."""

    name: str
    is_baseline: bool
    repeats: tuple[tuple[float | None, ...], ...]
    mean: tuple[float | None, ...]


class TimeCharts(Payload, frozen=True, kw_only=True):
    label: str
    shown_as: str
    bin_s: int
    logarithmic: bool
    ceilings: tuple[ChartCeiling, ...]
    series: tuple[TimeSeries, ...]
