"""Pages of results by what their last row holds, so that the thousandth page is as quick as the first.

A page begins after (or ends before) a row, named `value~id` of the column that is sorted by. Results without a value
of that column, such as a p99.9 of too few I/Os, have no place in the order and are left out: `without_value` counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from webapp.core.errors import Refusal
from webapp.results.filters import ResultFilter
from webapp.results.listing import Listed, listed
from webapp.results.metrics import METRICS
from webapp.results.models import Result
from webapp.results.selectors import conditions

COUNTED = 1_000  # more than these are not counted: it would cost more than the page itself
# key in an address -> column; each has an index (column, id)
SORTS: Mapping[str, str] = {"when": "measured_at"} | {
    key: METRICS[key].column
    for key in ("iops", "bytes_per_s", "latency_mean", "latency_p50", "latency_p95", "latency_p99", "latency_p999",
                "latency_max")
}  # fmt: skip
MAY_BE_MISSING = frozenset({"p50_ns", "p95_ns", "p99_ns", "p999_ns"})


@dataclass(frozen=True)
class Sort:
    """`-iops`: the largest first."""

    key: str = "when"
    descending: bool = True

    @property
    def column(self) -> str:
        return SORTS[self.key]

    def __str__(self) -> str:
        return f"{'-' if self.descending else ''}{self.key}"


@dataclass(frozen=True)
class Page:
    """`newer` and `older` name the rows to go on from, before the first and after the last; "" at an end."""

    rows: list[Listed]
    newer: str
    older: str


def read_sort(text: str) -> Sort:
    """Raises Refusal naming what can be sorted by."""
    key = text.removeprefix("-")
    if not text:
        return Sort()
    if key not in SORTS:
        raise Refusal("sort_unknown", f"sort={text}: there are {', '.join(SORTS)}, with - for the largest first.")
    return Sort(key, text.startswith("-"))


def page_of(asked: ResultFilter, sort: Sort, *, limit: int, after: str = "", before: str = "") -> Page:
    """Raises Refusal for a row that is named wrongly."""
    backwards = bool(before) and not after
    results = _sorted(Result.objects.filter(conditions(asked)), sort, backwards=backwards)
    named = before if backwards else after
    if named:
        results = results.filter(_beyond(sort, *_read_row(sort, named), backwards=backwards))
    found = listed(results[: limit + 1])
    more, rows = len(found) > limit, found[:limit]
    if backwards:
        rows.reverse()
    newer = bool(rows) and (more if backwards else bool(named))
    older = bool(rows) and (True if backwards else more)
    return Page(rows, _row_name(sort, rows[0]) if newer else "", _row_name(sort, rows[-1]) if older else "")


def _sorted(results: QuerySet[Result], sort: Sort, *, backwards: bool) -> QuerySet[Result]:
    sign = "-" if sort.descending is not backwards else ""
    if sort.column in MAY_BE_MISSING:
        results = results.filter(**{f"{sort.column}__isnull": False})
    return results.order_by(f"{sign}{sort.column}", f"{sign}id")


def _beyond(sort: Sort, value: object, id_: int, *, backwards: bool) -> Q:
    """Rows after (value, id) in the order. The first condition alone is what the index can answer."""
    way = "lt" if sort.descending is not backwards else "gt"
    column = sort.column
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(**{f"id__{way}": id_}))


def _row_name(sort: Sort, row: Listed) -> str:
    value = getattr(row, sort.column)
    return f"{value.isoformat() if isinstance(value, datetime) else repr(value)}~{row.id}"


def _read_row(sort: Sort, text: str) -> tuple[object, int]:
    value, _, id_ = text.rpartition("~")
    try:
        return (datetime.fromisoformat(value) if sort.key == "when" else float(value)), int(id_)
    except ValueError as error:
        raise Refusal("page_unknown", f"{text} names no place in this table. Begin at its first page.") from error


def count_up_to(asked: ResultFilter, most: int = COUNTED) -> int:
    """How many results fit; `most` + 1 where there are more."""
    return Result.objects.filter(conditions(asked)).order_by().values("pk")[: most + 1].count()


def without_value(asked: ResultFilter, sort: Sort, most: int = COUNTED) -> int:
    """How many of them the sort leaves out, counted likewise."""
    if sort.column not in MAY_BE_MISSING:
        return 0
    missing = Q(**{f"{sort.column}__isnull": True})
    return Result.objects.filter(conditions(asked) & missing).order_by().values("pk")[: most + 1].count()
