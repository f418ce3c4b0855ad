"""The page Results: a table whose address contains filters, columns and order, and its export."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.core.table_files import file_response
from webapp.plans.factors import FACTORS
from webapp.results.export import results_table
from webapp.results.reading.filter import FACTOR_PREFIX, ResultFilter, read_filter
from webapp.results.reading.query import MAX_COUNTED, Page, ResultQuery, Sort, points_of, read_sort
from webapp.results.reading.rows import ResultRow
from webapp.results.selectors import remember_columns, remembered_columns
from webapp.screens.access import own_action, page, person
from webapp.screens.addresses import result_addresses
from webapp.screens.choices import options_of
from webapp.screens.results.columns import COLUMNS, POINT, WHEN, Column, default_columns, read_columns
from webapp.screens.results.picks import Pick, attribute_picks, factor_picks, lenient_filter, pairs_of

# The rows of the table of results, with the text and the style of each cell.


@dataclass(frozen=True)
class TableRow:
    id: int
    trial: str  # run and number, like "run 12 #3", or "import 4 #17"
    address: str  # of the trial's page
    kernel_lines: int
    cells: list[tuple[str, str, str]]  # CSS classes, label and text, without the last column, the time
    shows_time: bool  # whether the last column is shown
    measured_at: datetime | None  # None if it is not stated
    invalid: bool
    why_invalid: str


def table_rows(results: Iterable[ResultRow], columns: Sequence[Column]) -> Iterator[TableRow]:
    """One row for each result. If the time is shown, it is the last of `columns`."""
    address_of = result_addresses()
    plain = [column for column in columns if column.key != WHEN]
    for result in results:
        yield TableRow(
            id=result.id,
            trial=f"{'' if result.imported else 'run '}{result.source_name} #{result.trial}",
            address=address_of(result),
            kernel_lines=result.kernel_lines,
            cells=[(_style(column, result), column.label, column.text(result)) for column in plain],
            shows_time=len(plain) < len(columns),
            measured_at=result.stated_at,
            invalid=result.invalid,
            why_invalid=result.why_invalid,
        )


def _style(column: Column, result: ResultRow) -> str:
    distrust = " distrust" if column.measured and result.invalid else ""
    kind = "num" if column.numeric else "words" if column.key == POINT else "nowrap"
    return f"{kind}{distrust}"


PER_PAGE = 50
MAX_LEVEL_RESULTS = 1_000  # newest results whose levels are options of the filters
NO_FILTER = ("after", "before", "sort", "columns", "more", "levels")


@page
def results_page(request: HttpRequest) -> HttpResponse:
    if request.GET.get("more"):
        return _with_another_factor(request)
    pairs = pairs_of(request.GET, *NO_FILTER)
    try:
        return render(request, "screens/results.html", _context(request, read_filter(pairs)))
    except Refusal as refusal:
        result_filter = lenient_filter(pairs)
        context = {
            "heading": "These filters cannot be used",
            "refusal": str(refusal),
            "picks": [*attribute_picks(result_filter), *factor_picks([], result_filter)],
            "filtered": True,
        }
        return render(request, "screens/results.html", context, status=422)


def _with_another_factor(request: HttpRequest) -> HttpResponse:
    """A form without a script sends `more=iodepth&levels=1..32 *2` for factor.iodepth=1..32 *2."""
    pairs = pairs_of(request.GET, "more", "levels", "after", "before")
    added = (f"{FACTOR_PREFIX}{request.GET['more']}", request.GET.get("levels", ""))
    return redirect(f"{reverse('results')}?{urlencode([pair for pair in (*pairs, added) if pair[1]])}")


def _context(request: HttpRequest, result_filter: ResultFilter) -> dict[str, object]:
    sort, results = read_sort(request.GET.get("sort", "")), ResultQuery.of(result_filter)
    shown = results.page(sort, limit=PER_PAGE, after=request.GET.get("after", ""), before=request.GET.get("before", ""))
    columns = _columns(request, result_filter, shown.rows)
    points = points_of(results.without_factors(), MAX_LEVEL_RESULTS)
    return {
        "picks": [*attribute_picks(result_filter), *factor_picks(points, result_filter)],
        "column_pick": _column_pick(columns),
        "others": options_of(
            (name, factor.label) for name, factor in FACTORS.items() if name not in result_filter.factors
        ),
        "invalid": result_filter.invalid,
        "references": result_filter.references,
        "left_out": results.count_invalid_left_out(),
        "columns": [(column, _sort_of(column, sort)) for column in columns],
        "rows": table_rows(shown.rows, columns),
        "troubled": sum(result.kernel_lines > 0 for result in shown.rows),
        "page": shown,
        "heading": _heading(results.count(), filtered=result_filter != ResultFilter()),
        "newest": shown.rows[0].stated_at if shown.rows and sort == Sort() and not shown.newer else None,
        "count": _count_text(results, sort, shown),
        "sort": str(sort),
        "filtered": bool(pairs_of(request.GET, "sort", "columns")),
        "query": urlencode(pairs_of(request.GET, *NO_FILTER)),
        "kept_columns": ",".join(column.key for column in columns),
    }


def _columns(request: HttpRequest, result_filter: ResultFilter, rows: Sequence[ResultRow]) -> list[Column]:
    """From the address, else the person's own columns, else the default."""
    given = read_columns(request.GET.getlist("columns"))
    remembered = () if given else tuple(key for key in remembered_columns(person(request)) if key in COLUMNS)
    return [COLUMNS[key] for key in given or remembered or default_columns(rows, result_filter.factors)]


def _column_pick(columns: Sequence[Column]) -> Pick:
    shown = {column.key for column in columns}
    options = options_of(((key, column.label) for key, column in COLUMNS.items()), *shown)
    return Pick("columns", "Columns", options, counted=True)


def _sort_of(column: Column, sort: Sort) -> tuple[str, str]:
    """The sort that a click on the heading selects (descending first), and the current order."""
    if not column.sorts:
        return "", ""
    if column.key != sort.key:
        return f"-{column.key}", ""
    return str(Sort(column.key, not sort.descending)), "descending" if sort.descending else "ascending"


def _heading(count: int, *, filtered: bool) -> str:
    """`251 results` or, with filters, `3 matching results`."""
    if not count:
        return "No results match" if filtered else "No results yet"
    return f"{_counted(count)}{' matching' if filtered else ''} result{'' if count == 1 else 's'}".capitalize()


def _count_text(results: ResultQuery, sort: Sort, shown: Page) -> str:
    count, missing = results.count(), results.count_without_value(sort)
    text = f"{len(shown.rows)} of {_counted(count)} result{'' if count == 1 else 's'} shown"
    if missing:
        text += f"; {_counted(missing)} without {COLUMNS[sort.key].label} left out"
    return text


def _counted(count: int) -> str:
    return f"more than {MAX_COUNTED:,}" if count > MAX_COUNTED else f"{count:,}"


@own_action
def keep_columns(request: HttpRequest) -> HttpResponse:
    """Save the columns for this person; no columns restore the default."""
    try:
        columns = read_columns(request.POST.getlist("columns"))
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect("results")
    remember_columns(user=person(request), columns=columns)
    messages.success(request, "Columns saved." if columns else "Default columns restored.")
    query = request.POST.get("query", "")
    return redirect(f"{reverse('results')}{f'?{query}' if query else ''}")


@page
def results_file(request: HttpRequest, ending: str) -> HttpResponse | StreamingHttpResponse:
    """All results of the filter, in ns, bytes and bytes/s."""
    try:
        table = results_table(read_filter(pairs_of(request.GET, *NO_FILTER)))
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    return file_response(table, "sweetspot-results", ending)
