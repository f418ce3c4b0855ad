"""Headline numbers: a few workloads that the products share, chosen by a rule.

For each headline: of the workloads of its pattern, those that most products have; of those, the block size named
below, or the smallest one (for sequential patterns the largest one); of those, the workload with the fewest
requests in flight for latencies, and for rates the one with the highest geometric mean over the products. If that
one has more requests in flight than others, the workload with the fewest is a second headline: drives that are
equal at the limit of a link or controller may differ at low load. A workload without a stated queue depth or number
of jobs is not chosen for its few requests if others state them. All products of a headline have the same workload.

Of a single drive, a workload counts if the newest run of some plan at this load measured it. Otherwise a plan that
states one more setting, and so makes another workload, would leave the values of its earlier runs on the page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from webapp.analysis.equals import BLOCK, DEPTH, JOBS
from webapp.bench.matching import Matched
from webapp.bench.products import Kind
from webapp.bench.workloads import RATE, Panel, Workload
from webapp.results.reading.rows import ResultRow
from worker.contract.workload import KIB, Pattern


@dataclass(frozen=True)
class Headline:
    title: str
    panel: Panel
    workload: Workload


@dataclass(frozen=True)
class _Rule:
    title: str
    is_rate: bool
    pattern: Pattern
    block: int = 4 * KIB  # preferred


_DRIVES = (Kind.TARGET, Kind.SERIAL)
_RULES = (
    _Rule("Random read", True, Pattern.RANDREAD),
    _Rule("Random write", True, Pattern.RANDWRITE),
    _Rule("Sequential read", True, Pattern.READ, 0),
    _Rule("Sequential write", True, Pattern.WRITE, 0),
    _Rule("Random read, {}", False, Pattern.RANDREAD),
    _Rule("Random write, {}", False, Pattern.RANDWRITE),
)


def headlines(matched: Matched) -> tuple[Headline, ...]:
    return tuple(_chosen(matched))


def _chosen(matched: Matched) -> Iterator[Headline]:
    for rule in _RULES:
        choice = RATE if rule.is_rate else matched.percentile
        panels = [panel for panel in matched.panels_of(choice) if panel.chart == rule.pattern]
        if panels:
            panel = max(panels, key=lambda candidate: _most(matched, candidate))
            yield from _of_panel(matched, panel, rule)


def _of_panel(matched: Matched, panel: Panel, rule: _Rule) -> Iterator[Headline]:
    alike, title = _alike(matched, panel, rule), rule.title.format(panel.metric.short)
    lowest = min(_of_known_load(alike), key=lambda workload: (workload.concurrency, workload.order))
    highest = max(alike, key=lambda workload: _mean(matched, panel, workload)) if rule.is_rate else lowest
    if highest.concurrency > lowest.concurrency:
        yield Headline(f"{title}, highest", panel, highest)
        yield Headline(f"{title}, lowest load", panel, lowest)
    else:
        yield Headline(title, panel, highest)


def _most(matched: Matched, panel: Panel) -> tuple[int, int]:
    """The products of the workload that most products have."""
    return max(_count(matched, panel, workload) for workload in matched.in_panel(panel))


def _count(matched: Matched, panel: Panel, workload: Workload) -> tuple[int, int]:
    """The products with a number; those with any value if only one product is shown."""
    covered = matched.covered_by(panel, workload.key)
    return (len(matched.measured_by(panel, workload.key)) if len(matched.products) > 1 else covered), covered


def _alike(matched: Matched, panel: Panel, rule: _Rule) -> list[Workload]:
    """The workloads of one block size that most products have."""
    all_, most = matched.in_panel(panel), _most(matched, panel)
    alike = _of_block([workload for workload in all_ if _count(matched, panel, workload) == most], rule.block)
    is_one_drive = len(matched.products) == 1 and matched.products[0].kind in _DRIVES
    return list(_measured_last(matched, panel, alike)) if is_one_drive else alike


def _measured_last(matched: Matched, panel: Panel, workloads: Sequence[Workload]) -> Iterator[Workload]:
    """Of the workloads with one load, those that the newest run of some plan, or an import, measured."""
    by_load: dict[tuple[object, ...], list[Workload]] = {}
    for workload in workloads:
        load = tuple(workload.point.get(name) for name in (BLOCK, DEPTH, JOBS))
        by_load.setdefault(load, []).append(workload)
    for alike in by_load.values():
        rows = {workload.key: matched.rows(panel, matched.products[0], workload.key) for workload in alike}
        every = [row for workload_rows in rows.values() for row in workload_rows]
        newest = {_plan(row): row.source for row in sorted(every, key=lambda row: (row.time_known, row.measured_at))}
        yield from (each for each in alike if any(row.source == newest[_plan(row)] for row in rows[each.key]))


def _plan(row: ResultRow) -> str | int:
    """Each import is one of its own."""
    return row.plan or row.source


def _of_block(known: Sequence[Workload], wanted: int) -> list[Workload]:
    sizes = {workload.number(BLOCK) for workload in known}
    size = wanted if wanted in sizes else min(sizes) if wanted else max(sizes)
    return [workload for workload in known if workload.number(BLOCK) == size]


def _of_known_load(alike: Sequence[Workload]) -> Sequence[Workload]:
    """Those that state queue depth and jobs as far as others do: a value without them may be of any load."""
    stated = {name for name in (DEPTH, JOBS) for workload in alike if name in workload.point}
    return [workload for workload in alike if stated <= workload.point.keys()] or alike


def _mean(matched: Matched, panel: Panel, workload: Workload) -> float:
    means = [matched.mean(panel, product, workload.key) for product in matched.measured_by(panel, workload.key)]
    if not means:  # only values of several drives, which are not shown, but tell which workload is the fastest
        means = [
            panel.metric.of(row) or 0.0
            for product in matched.products
            for row in matched.rows(panel, product, workload.key)
        ]
    return geometric_mean(means) if min(means) > 0 else 0.0
