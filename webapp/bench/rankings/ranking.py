"""The content of the page Rankings, for what its address asks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from webapp.bench.rankings.catalogue import (
    Catalogue,
    Load,
    Source,
    identity_of,
    observed_controllers,
    read_catalogue,
)
from webapp.bench.rankings.groups import Cells, Group, cells_of, groups_of, within_latency
from webapp.bench.rankings.question import USE_CASES, Question, Ranked, UseCase, chosen_load
from webapp.bench.rankings.ranked_products import products_of, read
from webapp.bench.rankings.scores import MIN_WEIGHT, ScoreGroup, scores_of
from webapp.bench.workloads import RATE
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class Ranking:
    """`load` is None if nothing was measured."""

    question: Question
    whole: Catalogue  # without the filter
    catalogue: Catalogue
    load: Load | None
    cells: Cells
    rows: Sequence[ResultRow]
    unread: tuple[str, ...]  # what was left out, because there are too many results
    has_more: bool  # whether a target has more results at a point than are read of it
    scores: tuple[ScoreGroup, ...]

    @cached_property
    def all_groups(self) -> tuple[Group, ...]:
        return tuple(groups_of(self.cells, self.load)) if self.load else ()

    @property
    def groups(self) -> tuple[Group, ...]:
        """Those that rank something."""
        return tuple(group for group in self.all_groups if len(group.entries) > 1)

    @property
    def alone(self) -> tuple[Group, ...]:
        """Values that are comparable with no other value."""
        return tuple(group for group in self.all_groups if len(group.entries) == 1)

    @property
    def offered(self) -> Catalogue:
        """What can be ranked by this metric."""
        return self.catalogue if self.question.limit_ns is None else self.catalogue.of_shares

    @property
    def was_wanted(self) -> bool:
        """Whether the load is the chosen one, and not only the nearest."""
        wanted = self.question.wanted.items()
        return self.load is None or all(getattr(self.load, name) == level for name, level in wanted)

    @cached_property
    def not_measured(self) -> tuple[str, ...]:
        """The names of what was measured at other loads only."""
        if self.load is None:
            return ()
        at_load = {source for key in self.offered.keys_of({self.load}) for source in self.offered.sources[key]}
        names = _named(self.catalogue.all_sources, self.question.ranked)
        measured = _named(at_load, self.question.ranked)
        if self.question.ranked is Ranked.CONTROLLER:  # of own results, only the results themselves name it
            measured |= {(name,): name for name in (entry.name for group in self.all_groups for entry in group.entries)}
            chosen = self.question.filter.controllers
            names |= {(name,): name for name in observed_controllers() if not chosen or name in chosen}
        return tuple(sorted({name for key, name in names.items() if key not in measured}, key=str.lower))

    @cached_property
    def use_cases(self) -> tuple[tuple[UseCase, bool], ...]:
        """Each with whether enough of its workloads was measured at all."""
        loads = self.catalogue.counts
        return tuple((use_case, _is_covered(use_case, loads)) for use_case in USE_CASES.values())


def _is_covered(use_case: UseCase, loads: Iterable[Load]) -> bool:
    known = list(loads)
    parts = zip(use_case.parts, use_case.weights, strict=True)
    weight = sum(weight for part, weight in parts if any(map(part.fits, known)))
    return weight >= MIN_WEIGHT * sum(use_case.weights)


def _named(sources: Iterable[Source], ranked: Ranked) -> dict[tuple[str, ...], str]:
    return {key: name for source in sources for key, name in _names(source, ranked)}


def _names(source: Source, ranked: Ranked) -> Iterator[tuple[tuple[str, ...], str]]:
    """An identity and a name, if the source is ranked."""
    if ranked is Ranked.DRIVE:
        if source.imported or not source.layout:
            what = ", ".join(filter(None, (source.model, source.layout))) or source.import_title
            yield identity_of(source), what if source.imported else (source.model or source.target_name)
        return
    name = {
        Ranked.HOST: source.host if not source.reference else "",
        Ranked.CONTROLLER: (source.controller or "") if not source.reference else "",
        Ranked.LAYOUT: source.layout,
    }[ranked]
    if name:
        yield (name,), name


def rank(question: Question) -> Ranking:
    """At most fifteen queries, whatever the number of drives and results."""
    whole = read_catalogue()
    catalogue = whole.admitted(question.filter)
    load = chosen_load(question, catalogue if question.limit_ns is None else catalogue.of_shares)
    loads = list(catalogue.counts)
    parts = {
        measured_load for measured_load in loads if any(part.fits(measured_load) for part in question.use_case.parts)
    }
    wanted = [{load} if load else set(), parts, _curve(load, loads) if load else set()]
    results = read(catalogue, wanted, question.filter)
    products = products_of(results.rows, question.ranked)
    rates = cells_of(products, question.ranked, RATE, across_hosts=question.across_hosts)
    if question.limit_ns is not None:
        cells = within_latency(rates, load, question.limit_ns) if load else rates
    elif question.metric == RATE:
        cells = rates
    else:
        cells = cells_of(products, question.ranked, question.metric, across_hosts=question.across_hosts)
    scores = tuple(scores_of(rates, question)) if results.sets > 1 else ()
    unread = ("", "scores", "shared ceilings")[results.sets :]
    return Ranking(question, whole, catalogue, load, cells, results.rows, unread, results.has_more, scores)


def _curve(load: Load, loads: Iterable[Load]) -> set[Load]:
    """The loads of the same pattern and block size, where the value may be the same: at a ceiling."""
    return {each for each in loads if each.pattern == load.pattern and each.block_size == load.block_size}
