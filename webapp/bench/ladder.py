"""The latency percentiles and the maximum of one workload, as means over the repeats."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.matching import Matched
from webapp.bench.panels import P95, P99, Panel
from webapp.bench.products import Product
from webapp.bench.workloads import Workload
from webapp.compare.blocks import measured
from webapp.compare.grouping import Grouped
from webapp.core.statistics import Summary, summarise
from webapp.results.metrics import METRICS, Metric
from webapp.results.reading.rows import ResultRow

STEPS = ("latency_p50", P95, P99, "latency_p999", "latency_max")


@dataclass(frozen=True)
class Ladder:
    """`steps` has a summary for each product; None if there are too few I/Os for a percentile."""

    key: str  # names the workload in addresses
    title: str
    steps: tuple[tuple[Metric, tuple[Summary | None, ...]], ...]
    slow: tuple[Product, ...]  # with a mean above the p99, both as means over the repeats


def mean_above_p99(row: ResultRow) -> bool:
    """Fewer than 1 % of the I/Os took most of the time. Neither p99 nor lower percentiles show them."""
    return row.latency_mean_ns is not None and row.p99_ns is not None and row.latency_mean_ns > row.p99_ns


def _is_slow(rows: Sequence[ResultRow]) -> bool:
    known = [row for row in rows if row.latency_mean_ns is not None and row.p99_ns is not None]
    means, p99s = ([metric.of(row) or 0.0 for row in known] for metric in (METRICS["latency_mean"], METRICS[P99]))
    return sum(means) > sum(p99s)


def ladders(matched: Matched) -> dict[str, str]:
    """Texts of the workloads with latencies, by key: those that at least two products have, otherwise all."""
    return {_key(panel, one): _title(matched, panel, one) for panel, one in _shared(matched)}


def ladder(matched: Matched, key: str, default: str) -> Ladder | None:
    """The percentiles of this workload, otherwise those of the default one."""
    known = {_key(panel, one): (panel, one) for panel, one in _shared(matched)}
    chosen = known.get(key) or known.get(default) or next(iter(known.values()), None)
    if chosen is None:
        return None
    panel, one = chosen
    rows = {product: matched.by_direction.get((product, one.key, panel.direction), ()) for product in matched.products}
    steps = tuple((METRICS[name], tuple(_summaries(METRICS[name], rows))) for name in STEPS)
    slow = tuple(product for product, own in rows.items() if _is_slow(own))
    return Ladder(_key(panel, one), _title(matched, panel, one), steps, slow)


def ladder_key(panel: Panel, one: Workload) -> str:
    return _key(panel, one)


def _key(panel: Panel, one: Workload) -> str:
    return f"{one.key}.{panel.direction}"


def _title(matched: Matched, panel: Panel, one: Workload) -> str:
    return f"{panel.name} · {matched.texts[one.key]}"


def _shared(matched: Matched) -> Iterator[tuple[Panel, Workload]]:
    """Workloads that at least two products have, otherwise all."""
    all_ = [(panel, one) for panel in matched.panels_of(matched.percentile) for one in matched.in_panel(panel)]
    counts = [len(matched.measured_by(panel, one.key)) for panel, one in all_]
    least = min(2, max(counts, default=0))
    yield from (each for each, count in zip(all_, counts, strict=True) if count >= least)


def _summaries(metric: Metric, rows: Mapping[Product, Sequence[ResultRow]]) -> Iterator[Summary | None]:
    for product, own in rows.items():
        valued = [row for row in own if metric.of(row) is not None]
        key = ("", str(product), "")
        cells = measured(Grouped({key: valued}, (), (), ()), metric) if valued else {}
        yield summarise(list(cells[key].values.values()), cells[key].step) if cells else None
