"""All results: a table with filters, columns and order in the address, and what is filtered as CSV."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.compare.reading import points_there
from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS
from webapp.results.filters import FACTOR_PREFIX, ResultFilter, read_filter, without_factors
from webapp.results.listing import Listed
from webapp.results.paging import COUNTED, Page, Sort, count_up_to, page_of, read_sort, without_value
from webapp.results.preferences import remember_columns, remembered_columns
from webapp.results.selectors import left_out_as_invalid, located
from webapp.screens.access import own_action, page, person
from webapp.screens.choices import options_of
from webapp.screens.results.columns import COLUMNS, Column, default_columns, read_columns
from webapp.screens.results.csv_export import csv_response, result_rows
from webapp.screens.results.picks import Pick, factor_picks, lenient_filter, pairs_of, place_picks
from webapp.screens.results.table import table_rows

PER_PAGE = 100
LEVELS_LOOKED_AT = 1_000
NO_FILTER = ("after", "before", "sort", "columns", "more", "levels")


@page
def results_page(request: HttpRequest) -> HttpResponse:
    if request.GET.get("more"):
        return _with_another_factor(request)
    pairs = pairs_of(request.GET, *NO_FILTER)
    try:
        return render(request, "screens/results.html", _context(request, read_filter(pairs)))
    except Refusal as refusal:
        asked = lenient_filter(pairs)
        context = {"refusal": str(refusal), "picks": [*place_picks(asked), *factor_picks([], asked)], "filtered": True}
        return render(request, "screens/results.html", context, status=400)


def _with_another_factor(request: HttpRequest) -> HttpResponse:
    """`more=iodepth&levels=1..32 *2` is how a form without a script asks for factor.iodepth=1..32 *2."""
    pairs = pairs_of(request.GET, "more", "levels", "after", "before")
    added = (f"{FACTOR_PREFIX}{request.GET['more']}", request.GET.get("levels", ""))
    return redirect(f"{reverse('results')}?{urlencode([pair for pair in (*pairs, added) if pair[1]])}")


def _context(request: HttpRequest, asked: ResultFilter) -> dict[str, object]:
    sort, asked = read_sort(request.GET.get("sort", "")), located(asked)
    shown = page_of(
        asked, sort, limit=PER_PAGE, after=request.GET.get("after", ""), before=request.GET.get("before", "")
    )
    columns = _columns(request, asked, shown.rows)
    found = points_there(without_factors(asked), LEVELS_LOOKED_AT)
    return {
        "picks": [*place_picks(asked), *factor_picks(found, asked), _column_pick(columns)],
        "others": options_of((name, factor.label) for name, factor in FACTORS.items() if name not in asked.factors),
        "invalid": asked.invalid,
        "left_out": left_out_as_invalid(asked),
        "columns": [(column, _sort_of(column, sort)) for column in columns],
        "body": table_rows(shown.rows, columns, with_reasons=asked.invalid),
        "troubled": sum(result.kernel_lines > 0 for result in shown.rows),
        "page": shown,
        "count": _count_in_words(asked, sort, shown),
        "sort": str(sort),
        "filtered": bool(pairs_of(request.GET, "sort", "columns")),
        "query": urlencode(pairs_of(request.GET, *NO_FILTER)),
        "kept_columns": ",".join(column.key for column in columns),
    }


def _columns(request: HttpRequest, asked: ResultFilter, rows: Sequence[Listed]) -> list[Column]:
    """Of the address; else as the person wants them; else the usual ones."""
    given = read_columns(request.GET.getlist("columns"))
    remembered = () if given else tuple(key for key in remembered_columns(person(request)) if key in COLUMNS)
    return [COLUMNS[key] for key in given or remembered or default_columns(rows, asked.factors)]


def _column_pick(columns: Sequence[Column]) -> Pick:
    shown = {column.key for column in columns}
    options = options_of(((key, column.label) for key, column in COLUMNS.items()), *shown)
    return Pick("columns", "Columns", options, counted=True)


def _sort_of(column: Column, sort: Sort) -> tuple[str, str]:
    """Where its heading leads, and how it is sorted now: the largest first, then the smallest."""
    if not column.sorts:
        return "", ""
    if column.key != sort.key:
        return f"-{column.key}", ""
    return str(Sort(column.key, not sort.descending)), "descending" if sort.descending else "ascending"


def _count_in_words(asked: ResultFilter, sort: Sort, shown: Page) -> str:
    count = count_up_to(asked)
    many = f"more than {COUNTED:,}" if count > COUNTED else f"{count:,}"
    words = f"{len(shown.rows)} shown of {many} result{'' if count == 1 else 's'}"
    missing = without_value(asked, sort)
    if missing:
        many = f"more than {COUNTED:,}" if missing > COUNTED else f"{missing:,}"
        words += f"; {many} without a value of {COLUMNS[sort.key].label} are left out of this order"
    return words


@own_action
def keep_columns(request: HttpRequest) -> HttpResponse:
    """These columns from now on, for this person; none brings the usual ones back."""
    try:
        columns = read_columns(request.POST.getlist("columns"))
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect("results")
    remember_columns(user=person(request), columns=columns)
    messages.success(request, "These are your columns now." if columns else "The usual columns are back.")
    query = request.POST.get("query", "")
    return redirect(f"{reverse('results')}{f'?{query}' if query else ''}")


@page
def results_csv(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """Exactly what is filtered, in plain numbers in ns, bytes and bytes/s."""
    try:
        asked = read_filter(pairs_of(request.GET, *NO_FILTER))
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain")
    return csv_response("sweetspot-results", result_rows(asked))
