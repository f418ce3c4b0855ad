"""One side of a verdict: the results that a filter of `GET /results` finds."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from webapp.core.errors import NotFound, Refusal
from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, ResultFilter, read_filter, write_level
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run
from webapp.trends.history import ENDED

TARGET, LABEL_PREFIX = "target", "label."
MAX_RESULTS = 20_000  # of each side


@dataclass(frozen=True)
class Side:
    """`named` are the factors in the filter."""

    named: Collection[str]
    rows: Sequence[ResultRow]


def read_side(name: str, text: str) -> Side:
    """`name` is baseline or candidate, for errors. Raises Refusal."""
    asked = read_filter(parse_qsl(text, keep_blank_values=True))
    if asked == ResultFilter():
        raise Refusal("filter_missing", f"The {name} has no filter. Write for example run=17 or run=17&host=a.")
    _check_runs(asked.runs)
    rows = read_rows(ResultQuery.of(asked).results.order_by("id")[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        raise Refusal("too_many_results", f"More than {MAX_RESULTS:,} results match a side. Choose runs or targets.")
    return Side(tuple(asked.factors), rows)


def _check_runs(numbers: Collection[int]) -> None:
    states = dict(Run.objects.filter(number__in=numbers).values_list("number", "state"))
    for number in numbers:
        if number not in states:
            raise NotFound("run_unknown", f"There is no run {number}.")
        if states[number] not in ENDED:
            raise Refusal("run_open", f"Run {number} has not ended. Wait for its end.")


def at_levels(side: Side, levels: Mapping[str, str]) -> tuple[dict[str, str], Side]:
    """The levels that exist in the side, and its rows at these levels. `levels` has a text for each of `target`,
    `factor.<name>` and, of an import, `label.<name>`."""
    known = {name: text for name, text in levels.items() if text and _is_level(name)}
    kept = {name: text for name, text in known.items() if text in levels_of(side.rows, name)}
    named = (*side.named, *(name.removeprefix(FACTOR_PREFIX) for name in kept if name.startswith(FACTOR_PREFIX)))
    rows = [row for row in side.rows if all(level_of(row, name) == text for name, text in kept.items())]
    return kept, Side(named, rows)


def import_side(number: int, levels: Mapping[str, str]) -> Side:
    """The results of an import at these levels. Raises Refusal if it has none at one of them: without this level, other
    results would be judged."""
    kept, side = at_levels(read_side("baseline", f"import={number}"), levels)
    missing = [f"{name}={text}" for name, text in levels.items() if name not in kept]
    if missing:
        words = f"Import {number} has no valid results at {', '.join(missing)}. Choose another level."
        raise Refusal("level_unknown", words)
    return side


def levels_of(rows: Iterable[ResultRow], name: str) -> set[str]:
    return {level_of(row, name) for row in rows}


def _is_level(name: str) -> bool:
    of_factor = name.startswith(FACTOR_PREFIX) and name.removeprefix(FACTOR_PREFIX) in FACTORS
    return of_factor or name == TARGET or name.startswith(LABEL_PREFIX)


def level_of(row: ResultRow, name: str) -> str:
    """Of `target`, `factor.<name>` or `label.<name>`; "" for a row without this label."""
    if name == TARGET:
        return target_of(row)
    if name.startswith(LABEL_PREFIX):
        return row.facts.get(name.removeprefix(LABEL_PREFIX), "") if row.imported else ""
    factor = name.removeprefix(FACTOR_PREFIX)
    return write_level(factor, row.point[factor]) if factor in row.point and factor in FACTORS else NOT_SET.value


def target_of(row: ResultRow) -> str:
    """host/target. Without labels of a drive or layout, the target of an import is all that it measured:
    `target_name` is then the name of the test."""
    if row.imported and not (row.model or row.layout):
        return row.host or row.source_name
    return row.target_name
