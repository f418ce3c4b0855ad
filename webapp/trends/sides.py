"""One side of a verdict: the results that a filter of `GET /results` finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from webapp.core.errors import Refusal
from webapp.results.reading.filter import ResultFilter, read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run
from webapp.trends.history import ENDED

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
            raise Refusal("run_unknown", f"There is no run {number}.")
        if states[number] not in ENDED:
            raise Refusal("run_open", f"Run {number} has not ended. Wait for its end.")
