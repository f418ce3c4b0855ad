"""Headline numbers: a few workloads that the products share, chosen by a rule.

For each headline: of the workloads of its pattern, those that most products have; of those, the block size named
below, or the smallest one (for sequential patterns the largest one); of those, the workload with the fewest requests
in flight for latencies, and for rates the one with the highest geometric mean over the products. If that one has more
requests in flight than others, the workload with the fewest is a second headline: drives that are equal at the limit of
a link or controller may differ at low load. A workload without a stated queue depth or number of jobs is not chosen for
its few requests if others state them. All products of a headline have the same workload.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from webapp.bench.matching import Matched
from webapp.bench.panels import RATE, Panel
from webapp.bench.workloads import BLOCK, DEPTH, JOBS, Workload
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
            panel = max(panels, key=lambda one: _most(matched, one))
            yield from _of_panel(matched, panel, rule)


def _of_panel(matched: Matched, panel: Panel, rule: _Rule) -> Iterator[Headline]:
    alike, title = _alike(matched, panel, rule), rule.title.format(panel.metric.short)
    lowest = min(_of_known_load(alike), key=lambda one: (one.concurrency, one.order))
    highest = max(alike, key=lambda one: _mean(matched, panel, one)) if rule.is_rate else lowest
    if highest.concurrency > lowest.concurrency:
        yield Headline(f"{title}, highest", panel, highest)
        yield Headline(f"{title}, lowest load", panel, lowest)
    else:
        yield Headline(title, panel, highest)


def _most(matched: Matched, panel: Panel) -> int:
    """The products of the workload that most products have."""
    return max(len(matched.measured_by(panel, one.key)) for one in matched.in_panel(panel))


def _alike(matched: Matched, panel: Panel, rule: _Rule) -> list[Workload]:
    """The workloads of one block size that most products have."""
    all_, most = matched.in_panel(panel), _most(matched, panel)
    return _of_block([one for one in all_ if len(matched.measured_by(panel, one.key)) == most], rule.block)


def _of_block(known: Sequence[Workload], wanted: int) -> list[Workload]:
    sizes = {one.number(BLOCK) for one in known}
    size = wanted if wanted in sizes else min(sizes) if wanted else max(sizes)
    return [one for one in known if one.number(BLOCK) == size]


def _of_known_load(alike: Sequence[Workload]) -> Sequence[Workload]:
    """Those that state queue depth and jobs as far as others do: a value without them may be of any load."""
    stated = {name for name in (DEPTH, JOBS) for one in alike if name in one.point}
    return [one for one in alike if stated <= one.point.keys()] or alike


def _mean(matched: Matched, panel: Panel, one: Workload) -> float:
    means = [matched.mean(panel, product, one.key) for product in matched.measured_by(panel, one.key)]
    return geometric_mean(means) if min(means) > 0 else 0.0
