"""The list of imports, and what an import brought: its tests, and each file with its reason."""

import re
from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from webapp.bench.picking import products_of_import
from webapp.core.models import User
from webapp.imports.formats import FORMATS
from webapp.imports.selectors import files_of, refused_by_reason, results_of, some_refused, timed_tests
from webapp.results.models import Import, ImportedFile
from webapp.results.reading.rows import read_rows
from webapp.screens.access import page, person
from webapp.screens.bench.address import bench_address
from webapp.screens.imports.entered_values import DIMENSIONS, comparison_of_entered
from webapp.screens.imports.tests_table import table_of

PER_PAGE = 100
RESULTS, FILES, REFUSED = "results", "files", "refused"
CHOICES = {RESULTS: "Results", FILES: "Files", REFUSED: "Files left out"}
EMPTY = {
    RESULTS: "This import has no results. The reasons are listed above.",
    FILES: "No files were read.",
    REFUSED: "No file was left out.",
}
SHOWN_REASONS, SHOWN_FILES = 12, 20
RESULT_FIELDS = ("iops", "kiops", "mib_per_s", "mb_per_s", "latency_mean_us", "latency_p99_ms")  # examples
LABEL_FIELDS = {"host": "Host", "controller": "Controller", "drive": "Drive model", "layout": "Layout"}


@page
def imports_page(request: HttpRequest) -> HttpResponse:
    """Own imports, newest first, and the reference library."""
    imports = Import.objects.select_related("created_by")
    context = {
        "own": Paginator(imports.filter(slug=None), PER_PAGE).get_page(request.GET.get("page")),
        "references": imports.exclude(slug=None).order_by("title"),
        "label_fields": LABEL_FIELDS.items(),
        "result_fields": RESULT_FIELDS,
        "entered_labels": DIMENSIONS,
        "formats": sorted({*FORMATS, "fio-log"}),
    }
    return render(request, "screens/imports.html", context)


@page
def import_page(request: HttpRequest, number: int) -> HttpResponse:
    found = get_object_or_404(Import, number=number)
    choices = CHOICES if found.slug is None else {RESULTS: CHOICES[RESULTS]}
    shown = request.GET.get("show", RESULTS)
    shown = shown if shown in choices else RESULTS
    page_number = request.GET.get("page") or _page_of_test(found, request.GET.get("test", ""))
    pages = Paginator(_listed(found, shown), PER_PAGE).get_page(page_number)
    ids = [result.pk for result in pages] if shown == RESULTS else []
    refused = refused_by_reason(found)
    context = {
        "import": found,
        "choices": choices,
        "shown": shown,
        "pages": pages,
        "table": table_of(read_rows(results_of(found).filter(pk__in=ids))) if ids else None,
        "timed": timed_tests(found) if ids else (),
        "empty": EMPTY[shown],
        "reasons": _reasons(found, dict(list(refused.items())[:SHOWN_REASONS])),
        "further_reasons": max(0, len(refused) - SHOWN_REASONS),
        "may_undo": may_undo(found, person(request)),
        "comparison": comparison_of_entered(found),
        "bench": bench_address(products_of_import(found)),
    }
    return render(request, "screens/import.html", context)


def _reasons(found: Import, refused: Mapping[str, int]) -> list[tuple[str, int, list[ImportedFile], int]]:
    """Reason, number of files, the first files, and the number of the others."""
    files = some_refused(found, refused, SHOWN_FILES) if refused else {}
    return [(reason, count, files[reason], count - len(files[reason])) for reason, count in refused.items()]


def _listed(found: Import, shown: str) -> QuerySet[Any]:
    return results_of(found) if shown == RESULTS else files_of(found, only_refused=shown == REFUSED)


def _page_of_test(found: Import, test: str) -> int:
    """The page of results that has the test with this number; 1 if there is none."""
    if not re.fullmatch(r"[0-9]{1,9}", test, re.ASCII):
        return 1
    return results_of(found).filter(origin__number__lt=int(test)).count() // PER_PAGE + 1


def may_undo(found: Import, user: User) -> bool:
    own = found.created_by_id == user.pk or user.is_administrator
    return found.slug is None and user.is_operator and own
