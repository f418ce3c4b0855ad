"""One product over time: its runs, its values in each run, and what changed between runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from webapp.analysis.cells import Grouped, measured
from webapp.analysis.dimensions import VOLATILE, label_of_fact
from webapp.bench.matching import Matched
from webapp.bench.products import Product
from webapp.bench.workloads import Panel, Workload
from webapp.core.statistics import Summary, summarise
from webapp.results.reading.rows import ResultRow

MAX_TARGETS = 8  # as there are colours
MAX_VALUES = 100  # of a target, the newest: each is a row of a table too
MAX_CHANGES = 50


@dataclass(frozen=True)
class RunOfProduct:
    name: str  # "17", or "import 3"
    number: int  # of the run, 0 for an import
    imported: int
    title: str  # of the plan or the import
    at: datetime  # of its last result; of the import, if that does not state when it was measured
    time_known: bool
    targets: tuple[str, ...]
    results: int


@dataclass(frozen=True)
class Value:
    """What one target measured in one run or import."""

    run: str  # ResultRow.source_name
    at: datetime
    summary: Summary


@dataclass(frozen=True)
class OverTime:
    """One workload. `values` by target, oldest first. `targets` is the number of targets, and `runs` the highest number
    of runs at one of them, with those that are not shown."""

    title: str
    panel: Panel
    workload: Workload
    values: Mapping[str, tuple[Value, ...]]
    targets: int
    runs: int


@dataclass(frozen=True)
class Change:
    """A fact that differs from the run before on the same target."""

    run: int
    at: datetime
    target: str
    label: str
    before: str
    after: str


def _by_time(row: ResultRow) -> tuple[datetime, int]:
    return row.measured_at, row.id


def runs(rows: Sequence[ResultRow]) -> list[RunOfProduct]:
    """Newest first."""
    rows_by_source: dict[int, list[ResultRow]] = {}
    for row in rows:
        rows_by_source.setdefault(row.source, []).append(row)
    made = [_run(run_rows) for run_rows in rows_by_source.values()]
    return sorted(made, key=lambda run: run.at, reverse=True)


def _run(rows: Sequence[ResultRow]) -> RunOfProduct:
    first = rows[0]
    return RunOfProduct(
        name=first.source_name,
        number=first.run,
        imported=first.imported,
        title=first.plan_title or first.import_title,
        at=max(row.measured_at for row in rows),
        time_known=all(row.time_known for row in rows),
        targets=tuple(sorted({row.target_name for row in rows})),
        results=len(rows),
    )


def over_time(matched: Matched, product: Product, title: str, panel: Panel, workload: Workload) -> OverTime:
    """The values of each run. Targets are not pooled; those with the most runs come first. Imports that do not state
    when they were measured have no place."""
    by_target: dict[str, dict[int, list[ResultRow]]] = {}
    for row in (row for row in matched.rows(panel, product, workload.key) if row.time_known):
        by_target.setdefault(row.target_name, {}).setdefault(row.source, []).append(row)
    ordered = sorted(by_target, key=lambda name: (-len(by_target[name]), name))[:MAX_TARGETS]
    values = {name: tuple(_values(by_target[name], panel)) for name in ordered}
    return OverTime(title, panel, workload, values, len(by_target), max(map(len, by_target.values()), default=0))


def _values(by_run: Mapping[int, list[ResultRow]], panel: Panel) -> Iterator[Value]:
    for rows in sorted(by_run.values(), key=lambda rows: rows[0].measured_at)[-MAX_VALUES:]:
        key = ("", "", "")
        cell = measured(Grouped({key: rows}, (), (), ()), panel.metric)[key]
        yield Value(
            rows[0].source_name, max(row.measured_at for row in rows), summarise(list(cell.values.values()), cell.step)
        )


def changes(rows: Sequence[ResultRow]) -> list[Change]:
    """Newest first."""
    targets: dict[str, list[ResultRow]] = {}
    for row in sorted(rows, key=_by_time):
        targets.setdefault(row.target_name, []).append(row)
    unsorted = [change for target_rows in targets.values() for change in _changes(target_rows)]
    return sorted(unsorted, key=lambda change: change.at, reverse=True)[:MAX_CHANGES]


def _changes(rows: Sequence[ResultRow]) -> Iterator[Change]:
    """Compares one result of each of two consecutive runs: the first one at a point of both, because a plan may vary
    settings within a run, and others follow from these; without such a point, the first ones.

    A fact that an earlier run states and this one does not keeps its value: a worker that reports more than before is
    no change of the system.
    """
    by_run: dict[int, list[ResultRow]] = {}
    for row in rows:
        if row.run and row.facts:
            by_run.setdefault(row.run, []).append(row)
    known: dict[str, str] = {}
    for earlier, later in pairwise(by_run.values()):
        first = {row.point_key: row for row in reversed(earlier)}
        alike = ((first[row.point_key], row) for row in later if row.point_key in first)
        before, after = next(alike, (earlier[0], later[0]))
        known |= before.facts
        for name in sorted((known.keys() & after.facts.keys()) - VOLATILE):
            old, new = known[name], after.facts[name]
            if old != new and not _is_planned(name, before, after):
                yield Change(after.run, after.measured_at, after.target_name, label_of_fact(name), old, new)


def _is_planned(fact: str, *rows: ResultRow) -> bool:
    """The plan sets it, so its value is part of the workload."""
    return any(fact.rpartition(".")[2] in row.point for row in rows)
