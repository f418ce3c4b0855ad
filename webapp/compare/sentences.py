"""Conclusions of a comparison as sentences, with their uncertainty."""

from collections.abc import Sequence
from statistics import geometric_mean

from webapp.compare.statistics import Ratio
from webapp.core.formatting import ratio as as_ratio
from webapp.results.metrics import Metric

RATIO, PERCENT = "ratio", "percent"

# Repeats that cannot detect a difference of 25 % cannot show that there is no difference (our convention).
COARSEST_RESOLUTION = 0.25


def form_of(values: Sequence[float]) -> str:
    """The form of a ratio column: percent, or ratios if any value doubles or halves."""
    return RATIO if any(value >= 2 or value <= 0.5 for value in values) else PERCENT


def shown(value: float, form: str) -> str:
    """×2.60, or −38 %."""
    if form == RATIO:
        return as_ratio(value)
    percent = (value - 1) * 100
    sign = "" if _amount(percent) in ("0.0", "0") else "+" if percent > 0 else "−"
    return f"{sign}{_amount(percent)} %"


def _amount(percent: float) -> str:
    """Without a sign: one decimal below 10 %, none from 10 %."""
    magnitude = abs(percent)
    return f"{magnitude:.1f}" if magnitude < 9.95 else f"{magnitude:,.0f}"


def interval(ratio: Ratio, form: str) -> str:
    """Low to high; "" without an interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"{shown(ratio.low, form)} to {shown(ratio.high, form)}"


def against_baseline(
    *, name: str, baseline: str, metric: Metric, overall: Ratio | None, single: Sequence[Ratio], repeats: int, form: str
) -> str:
    """One series against the baseline; `single` are the ratios at each chart point that both have."""
    if not single:
        return f"{name} and {baseline} share no test points."
    if overall is None or overall.low is None:
        return _without_interval(name, baseline, metric, single, form)
    across = f" on average over {len(single)} points" if len(single) > 1 else ""
    if not overall.resolved:
        return _no_difference(name, baseline, metric, overall, single, repeats, form)
    text = _compared(name, baseline, overall.value, metric, form)
    return f"{text}{across} (95 % CI {interval(overall, form)}){_range(single, form)}."


def _compared(name: str, baseline: str, value: float, metric: Metric, form: str) -> str:
    """`psync is 38 % slower than io_uring`, `psync has ×2.60 the p99 latency of io_uring`."""
    latency = metric.shown_as == "latency"
    what = f"{metric.label[0].lower()}{metric.label[1:]}" if latency else metric.label
    if form == RATIO:
        return f"{name} {'has' if latency else 'reaches'} {as_ratio(value)} the {what} of {baseline}"
    amount = f"{_amount((value - 1) * 100)} %"
    if latency:
        return f"{name} has a {amount} {'higher' if value > 1 else 'lower'} {what} than {baseline}"
    return f"{name} is {amount} {'faster' if value > 1 else 'slower'} than {baseline}"


def _without_interval(name: str, baseline: str, metric: Metric, single: Sequence[Ratio], form: str) -> str:
    text = f"{name} against {baseline}, {metric.label}: {_average(single, form)}{_range(single, form)}."
    return f"{text} Without repeats on both sides, chance cannot be excluded."


def _average(single: Sequence[Ratio], form: str) -> str:
    """The geometric mean, the mean of ratios everywhere."""
    values = [ratio.value for ratio in single]
    if len(values) == 1 or min(values) <= 0:
        return ", ".join(shown(value, form) for value in values[:4])
    return f"{shown(geometric_mean(values), form)} on average over {len(values)} points"


def _no_difference(
    name: str, baseline: str, metric: Metric, overall: Ratio, single: Sequence[Ratio], repeats: int, form: str
) -> str:
    resolution = overall.resolution or 0.0
    singly = any(ratio.resolved for ratio in single)
    if resolution > COARSEST_RESOLUTION:
        apart = f", but they differ at single points{_range(single, form)}" if singly else ""
        return (
            f"{name} and {baseline}: inconclusive for the mean {metric.label}{apart}. "
            f"The spread of {repeats} repeats hides differences below {as_ratio(1 + resolution)}."
        )
    within = f"within the resolution of {repeats} repeats (± {_amount(resolution * 100)} %)"
    if singly:
        return (
            f"{name} and {baseline}: no difference in mean {metric.label} {within}, "
            f"but they differ at single points{_range(single, form)}."
        )
    return f"{name} and {baseline}: no difference in {metric.label} {within}."


def _range(single: Sequence[Ratio], form: str) -> str:
    """`, from −5 % to +38 %`; "" for one chart point."""
    if len(single) < 2:
        return ""
    values = sorted(ratio.value for ratio in single)
    return f", from {shown(values[0], form)} to {shown(values[-1], form)}"
