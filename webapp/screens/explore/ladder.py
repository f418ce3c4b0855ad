"""The table of percentiles: one row per percentile, one column per series, compared with the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.analysis.latency import PERCENTS, Distribution
from webapp.analysis.words import form_of, shown
from webapp.core.formatting import latency
from worker.contract.packing import LAST_BUCKET_NS, least_count


@dataclass(frozen=True)
class LadderCell:
    text: str
    ratio: str  # "" for the baseline or without a ratio
    title: str  # the reason for a missing value or ratio, else ""


@dataclass(frozen=True)
class LadderRow:
    name: str  # p99.9
    cells: tuple[LadderCell, ...]


def ladder_of(series: Sequence[Distribution], form: str) -> tuple[LadderRow, ...]:
    """`form`: ratio, percent, or "" for automatic. Rows without any value are left out."""
    baseline = next((distribution for distribution in series if distribution.is_baseline), None)
    ratios = [_ratio(distribution, baseline, n) for distribution in series for n in range(len(PERCENTS))]
    chosen = form or form_of([ratio for ratio in ratios if ratio is not None])
    return tuple(
        LadderRow(f"p{percent:g}", tuple(_cell(distribution, baseline, n, chosen) for distribution in series))
        for n, percent in enumerate(PERCENTS)
        if any(distribution.percentiles_ns[n] is not None for distribution in series)
    )


def _ratio(distribution: Distribution, baseline: Distribution | None, n: int) -> float | None:
    value_ns, baseline_ns = distribution.percentiles_ns[n], baseline.percentiles_ns[n] if baseline else None
    if LAST_BUCKET_NS in (value_ns, baseline_ns) or (baseline and len({*distribution.kinds, *baseline.kinds}) > 1):
        return None  # more than 17 s, or different kinds of latency
    return value_ns / baseline_ns if value_ns is not None and baseline_ns and distribution is not baseline else None


def _cell(distribution: Distribution, baseline: Distribution | None, n: int, form: str) -> LadderCell:
    value = distribution.percentiles_ns[n]
    if value is None:
        return LadderCell("–", "", f"Too few I/Os: {distribution.ios:,} of the {least_count(PERCENTS[n]):,} required.")
    ratio = _ratio(distribution, baseline, n)
    return LadderCell(latency(value), "" if ratio is None else shown(ratio, form), "")
