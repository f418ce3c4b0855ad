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
    baseline = next((one for one in series if one.is_baseline), None)
    ratios = [_ratio(one, baseline, n) for one in series for n in range(len(PERCENTS))]
    chosen = form or form_of([ratio for ratio in ratios if ratio is not None])
    return tuple(
        LadderRow(f"p{percent:g}", tuple(_cell(one, baseline, n, chosen) for one in series))
        for n, percent in enumerate(PERCENTS)
        if any(one.percentiles_ns[n] is not None for one in series)
    )


def _ratio(one: Distribution, baseline: Distribution | None, n: int) -> float | None:
    own, theirs = one.percentiles_ns[n], baseline.percentiles_ns[n] if baseline else None
    if LAST_BUCKET_NS in (own, theirs) or (baseline and len({*one.kinds, *baseline.kinds}) > 1):
        return None  # more than 17 s, or different kinds of latency
    return own / theirs if own is not None and theirs and one is not baseline else None


def _cell(one: Distribution, baseline: Distribution | None, n: int, form: str) -> LadderCell:
    value = one.percentiles_ns[n]
    if value is None:
        return LadderCell("–", "", f"Too few I/Os: {one.ios:,} of the {least_count(PERCENTS[n]):,} required.")
    ratio = _ratio(one, baseline, n)
    return LadderCell(latency(value), "" if ratio is None else shown(ratio, form), "")
