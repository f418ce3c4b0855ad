"""Scores of a use case: the weighted geometric mean of rates at its workloads, relative to one product with 100.

With rates r of the product, r0 of the base and weights w with the sum 1, a score is 100 * exp(sum w ln(r / r0)). Its
interval is that of the weighted contrast (`analysis.claims`). Ratios of geometric means do not depend on the base
(P. J. Fleming, J. J. Wallace: How not to lie with statistics, Communications of the ACM 29, 1986), so the order is the
same whichever product is 100.

A product that lacks a workload has no score: a mean over fewer workloads is another quantity. Without MIN_WEIGHT of
the weight, nobody has one. Hosts and tools are kept apart as in a ranking.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.claims import contrast
from webapp.bench.rankings.catalogue import Load
from webapp.bench.rankings.groups import Cells, Entry, Kind, Place
from webapp.bench.rankings.question import Part, Question
from webapp.bench.rankings.standings import Order, order_of
from webapp.core.statistics import Ratio

MIN_WEIGHT = 0.7  # of the weights, of the workloads that two products of a group share (our convention)


@dataclass(frozen=True)
class Basis:
    """A part of the use case, and the workload that stands for it; None if too few products have one."""

    part: Part
    weight: float  # share of all weights
    load: Load | None


@dataclass(frozen=True)
class Score:
    """`ratio` is that to the base, so the score is 100 times it; without an interval if a value has no repeats.
    `parts` are the entries by part."""

    entry: Entry
    ratio: Ratio
    parts: tuple[Entry, ...]

    @property
    def value(self) -> float:
        return 100 * self.ratio.value


@dataclass(frozen=True)
class Lacking:
    """A product of the group without a score, and the parts that it lacks."""

    entry: Entry
    parts: tuple[str, ...]


@dataclass(frozen=True)
class ScoreGroup:
    """Scores that may be compared, the best first; `order.ranked` is in the order of `scores`."""

    tool: str
    place: Place
    bases: tuple[Basis, ...]  # of all parts with a weight
    scores: tuple[Score, ...]
    order: Order
    base: Entry
    lacking: tuple[Lacking, ...]

    @property
    def weight(self) -> float:
        """The share of the weights that the scores rest on."""
        return sum(basis.weight for basis in self.bases if basis.load)


_Key = tuple[object, ...]
_Workload = tuple[Load, Kind, str]  # with the key of its panel
_Values = Mapping[_Workload, Mapping[_Key, Entry]]


def scores_of(cells: Cells, question: Question) -> list[ScoreGroup]:
    """Groups with at least two scores, the one with the most first."""
    by_group: dict[tuple[str, Place], dict[_Workload, dict[_Key, Entry]]] = {}
    for entry in (entry for entry in cells.entries if entry.measured.positive):
        workloads = by_group.setdefault((entry.kind.tool, entry.kind.place), {})
        workloads.setdefault((entry.load, entry.kind, entry.panel.key), {})[entry.key] = entry
    groups = (_group(*key, workloads, question) for key, workloads in by_group.items())
    return sorted((group for group in groups if group), key=_by_size)


def _by_size(group: ScoreGroup) -> tuple[object, ...]:
    """Of groups with as many scores, own results before published ones."""
    return -len(group.scores), group.scores[0].entry.is_reference, group.tool, group.place


def _group(tool: str, place: Place, values: _Values, question: Question) -> ScoreGroup | None:
    total = sum(question.weights)
    parts = [
        (part, weight / total) for part, weight in zip(question.use_case.parts, question.weights, strict=True) if weight
    ]
    chosen = {part: workload for part, _ in parts if (workload := _workload_of(part, values))}
    bases = tuple(Basis(part, weight, chosen[part][0] if part in chosen else None) for part, weight in parts)
    covered = sum(basis.weight for basis in bases if basis.load)
    if covered < MIN_WEIGHT:
        return None
    shares = [basis.weight / covered for basis in bases if basis.load]
    columns = [values[chosen[basis.part]] for basis in bases if basis.load]
    complete = sorted(set.intersection(*map(set, columns)), key=lambda key: _name(columns[0][key]))
    if len(complete) < 2:
        return None
    entries = [tuple(column[key] for column in columns) for key in complete]
    order = order_of([[entry.measured for entry in product_entries] for product_entries in entries], weights=shares)
    ordered = [entries[ranked.place] for ranked in order.ranked]
    base = next(
        (product_entries for product_entries in ordered if str(product_entries[0].product) == question.base), ordered[0]
    )
    scores = tuple(
        Score(product_entries[0], _ratio(product_entries, base, shares), product_entries) for product_entries in ordered
    )
    labels = [basis.part.label for basis in bases if basis.load]
    return ScoreGroup(tool, place, bases, scores, order, base[0], tuple(_lacking(columns, labels, complete)))


def _name(entry: Entry) -> tuple[object, ...]:
    return entry.name, entry.where


def _workload_of(part: Part, values: _Values) -> _Workload | None:
    """The workload of the part that most products have; of equal ones, the usual one. None if fewer than two have
    it."""
    counts = {
        workload: len(entries) for workload, entries in values.items() if part.fits(workload[0]) and len(entries) > 1
    }
    return max(counts, key=lambda workload: (counts[workload], *_usual(part, workload)), default=None)


def _usual(part: Part, workload: _Workload) -> tuple[object, ...]:
    load, kind, panel = workload
    block, flight = part.usual
    return (
        -abs(load.block_size - block),
        -abs(load.in_flight - flight),
        -load.numjobs,
        panel,
        sorted(map(str, kind.conditions)),
    )


def _ratio(entries: Sequence[Entry], base: Sequence[Entry], shares: Sequence[float]) -> Ratio:
    """1 without an interval for the base itself."""
    if entries is base:
        return Ratio(1.0, None, None)
    return contrast(
        [(entry.measured, base_entry.measured) for entry, base_entry in zip(entries, base, strict=True)], shares
    ).ratio


def _lacking(
    columns: Sequence[Mapping[_Key, Entry]], labels: Sequence[str], complete: Iterable[_Key]
) -> Iterable[Lacking]:
    counts = Counter(key for column in columns for key in column)
    first = {key: entry for column in reversed(columns) for key, entry in column.items()}
    for key in sorted(counts.keys() - set(complete), key=lambda key: _name(first[key])):
        missing = (label for label, column in zip(labels, columns, strict=True) if key not in column)
        yield Lacking(first[key], tuple(missing))
