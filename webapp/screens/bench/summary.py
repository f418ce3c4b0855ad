"""A comparison of two products on one page of paper, for the person who decides."""

from collections.abc import Iterator

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from msgspec import structs

from webapp.bench.answer import BenchAnswer
from webapp.bench.products import BenchRefused
from webapp.bench.saved import query_of
from webapp.bench.specifications import HEADER, Specification
from webapp.screens.access import page
from webapp.screens.bench.address import read_address
from webapp.screens.bench.report import BenchReport, ReportColumn, report_of
from webapp.screens.bench.sections import sections

PRODUCTS = 2
MOST_ROWS, MOST_UNLIKE, MOST_CAVEATS = 12, 5, 5  # so that it fits on one page
HOST = HEADER[0][0]


@page
def bench_summary(request: HttpRequest) -> HttpResponse:
    """The query is that of the page Bench."""
    try:
        selection = read_address(request.GET)
        if selection is None or len(selection.products) != PRODUCTS:
            raise BenchRefused("bench_no_summary", "A summary compares two products. Choose two.")
    except BenchRefused as refusal:
        messages.error(request, refusal.message)
        return redirect("bench")
    query = query_of(selection)
    report = report_of(query)
    if report.answer is None or report.answer.verdict is None:
        return redirect(f"{reverse('bench')}?{query}")
    address = f"{reverse('bench')}?{query}"
    context = {
        "report": report,
        "sections": sections(_shortened(report.answer)),
        "evidence": list(_evidence(report)),
        "address": address,
        "full_address": request.build_absolute_uri(address),
        **_bounded(report),
    }
    return render(request, "screens/bench_summary.html", context)


def _shortened(answer: BenchAnswer) -> BenchAnswer:
    """The first groups of the plot, whose rows and headings have room on the page."""
    groups, room = [], MOST_ROWS
    for group in answer.forest:
        room -= 1  # its heading
        if room > 0:
            groups.append(structs.replace(group, rows=group.rows[:room]))
            room -= len(group.rows)
    return structs.replace(answer, forest=tuple(groups))


def _bounded(report: BenchReport) -> dict[str, object]:
    """What is not alike, and caveats; with the number of those that have no room."""
    unlike = list(_unlike(report))
    caveats = (*report.advice, *report.warnings, *report.notes)
    return {
        "unlike": unlike[:MOST_UNLIKE],
        "more_unlike": max(0, len(unlike) - MOST_UNLIKE),
        "caveats": caveats[:MOST_CAVEATS],
        "more_caveats": max(0, len(caveats) - MOST_CAVEATS),
    }


def _unlike(report: BenchReport) -> Iterator[Specification]:
    """What differs beside the products themselves; not the host, which is evidence."""
    names = [column.name for column in report.columns]
    labels = {HOST}
    for specification in (*report.header, *report.differing):
        is_unlike = specification.differs and not specification.is_partly_known and not specification.repeats(names)
        if is_unlike and specification.label not in labels:
            labels.add(specification.label)
            yield specification


def _evidence(report: BenchReport) -> Iterator[tuple[str, list[str]]]:
    """Label, and a text for each product; "" if unknown."""
    columns = report.columns
    yield "Results", [f"{column.results}{' read, more exist' if column.is_cut else ''}" for column in columns]
    yield "Source", [_source(column) for column in columns]
    yield "Measured (UTC)", [_ends(column.first_day, column.last_day) for column in columns]
    yield "n of each value", [_ends(*column.repeats or ()) for column in columns]
    for specification in report.header:
        if specification.label == HOST:
            yield HOST, [", ".join(values) for values in specification.values]


def _source(column: ReportColumn) -> str:
    """`4 runs, latest run 12; Old tests`"""
    runs = ""
    if len(column.runs) == 1:
        runs = f"Run {column.runs[0]}"
    elif column.runs:
        runs = f"{len(column.runs)} runs, latest run {column.runs[-1]}"
    return "; ".join(filter(None, (runs, *column.imports)))


def _ends(*ends: object) -> str:
    """`1 to 4`, or one value."""
    return " to ".join(dict.fromkeys(str(end) for end in ends if end))
