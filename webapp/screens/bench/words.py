"""Sentences about the numbers of Bench."""

from collections.abc import Iterator

from webapp.analysis.cells import PERCENTILES
from webapp.bench.reading import BY_TARGETS
from webapp.bench.side_by_side import SideBySide
from webapp.bench.workloads import chart_words, factor_words
from worker.contract.histogram import LAST_BUCKET_NS
from worker.contract.workload import Pattern

USUAL = (Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.READ, Pattern.WRITE)


def shared_words(found: SideBySide) -> str:
    """`8 of 98 workloads measured by all 3 products, 60 by at least two`"""
    products, of = len(found.products), f"of {found.workloads:,} workload{'' if found.workloads == 1 else 's'}"
    if products < 2:
        return "Only one product: choose another one to compare it with."
    if products == 2:
        return f"{found.shared:,} {of} shared"
    return f"{found.by_all:,} {of} measured by all {products} products, {found.shared:,} by at least two"


def warnings(found: SideBySide) -> Iterator[str]:
    """Beside the headline numbers."""
    names = found.matched.names
    if found.confounded:
        yield found.confounded
    if found.latency_kinds:
        yield found.latency_kinds
    if others := found.matched.other_levels:
        yield (
            f"Some values are means over several levels ({', '.join(map(factor_words, others))}), and not over the "
            "same levels as the value of the baseline. They are not compared."
        )
    if found.matched.overlapping:
        same = ", ".join(name for product, name in names.items() if str(product) in found.matched.overlapping)
        yield (
            f"No ratio to the baseline {names[found.asked.baseline]} where {same} has the same results: they would be "
            "compared with themselves."
        )
    if found.without_common:
        without = ", ".join(names[product] for product in found.without_common)
        yield f"No ratio to the baseline {names[found.asked.baseline]}: it shares no workload with {without}."


def notes(found: SideBySide) -> Iterator[str]:
    names = found.matched.names
    for product in found.empty:
        yield f"{names[product]} has no valid results."
    for product in found.read.cut:
        first = "the newest run of each plan, then older runs" if product.kind in BY_TARGETS else "the newest ones"
        yield (
            f"{names[product]} has more than {found.read.limit:,} results. The page reads {first}, up to this number. "
            "Choose single runs to compare others."
        )
    for product in found.references:
        yield f"{names[product]} is a published table: a ratio to it is not evidence of a difference."
    if found.single:
        yield (
            f"{found.single} of {len(found.matched.measured)} values were measured once. They have no interval: how "
            "much they vary from run to run is unknown, so no difference from them is called certain."
        )
    cells = [cell for group in found.groups for row in group.rows for cell in row.cells if cell]
    pooled = sum(bool(cell.pooled) for cell in cells)
    if pooled:
        yield f"{pooled} values on this page are means over several targets, kernels or settings; their cells say so."
    if any(cell.assumed for cell in cells):
        yield (
            "Some imports state no queue depth or number of jobs. Their values are shown with the one workload that "
            "fits, or with queue depth 1 and one job. The cells name this workload."
        )
    if _is_beyond_histogram(found):
        yield "A percentile above 17 s counts as 17 s, because the histogram ends there."
    for product, unstated in found.unstated.items():
        yield (
            f"Some results of {names[product]} do not state these factors, so they may differ from the workload of "
            f"their row: {', '.join(unstated)}."
        )
    if found.completion_latency:
        yield "Latencies are completion latencies: they leave out the time of the submission."
    if without := [chart_words(pattern) for pattern in USUAL if pattern not in found.patterns]:
        yield f"No product has results of these patterns: {', '.join(without).lower()}."
    if found.matched.comparisons and found.single < len(found.matched.measured):
        yield (
            f"Conclusions and colours are corrected for {found.matched.comparisons} comparisons (Holm's method: at "
            "most 5 % for any false claim on the page). Intervals are not corrected."
        )


def _is_beyond_histogram(found: SideBySide) -> bool:
    """Whether some latencies are only lower bounds."""
    percentiles = {panel.key for panel in found.matched.panels if panel.metric.column in PERCENTILES}
    measured = (one for (panel, *_), one in found.matched.measured.items() if panel in percentiles)
    return any(LAST_BUCKET_NS in one.values.values() for one in measured)
