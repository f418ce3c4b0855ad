"""Imports: the list, one import with its tests and files, values entered by hand, and one test's time series."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from msgspec import structs

from webapp.analysis.answer import Level
from webapp.analysis.import_findings import Conclusions, ImportFinding, stored
from webapp.analysis.known_ceilings import import_owners
from webapp.analysis.latency import ChartPoint
from webapp.analysis.question import CompareRefused
from webapp.analysis.reviews import findings_of_import, review_finding, undo_review
from webapp.analysis.timeline import time_lines
from webapp.analysis.trial_metrics import CPU_PER_IO
from webapp.bench.picking import products_of_import
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.imports.entered import TOOL, Entered, enter_values, read_values
from webapp.imports.formats import FORMATS
from webapp.imports.labels import read_labels
from webapp.imports.selectors import files_of, refused_by_reason, results_of, some_refused, timed_tests
from webapp.pictures.drawing import Drawing
from webapp.plans.factors import FACTORS
from webapp.results.metrics import CPU_PER_IO as IMPORTED
from webapp.results.metrics import METRICS, Metric, entered_metric
from webapp.results.models import Import, ImportedFile, ImportState, Origin
from webapp.results.reading.filter import FACT_PREFIX
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.screens.access import operator_action, page, person
from webapp.screens.bench.address import bench_address
from webapp.screens.ceilings import ceiling_form
from webapp.screens.explore.answer import SeriesName, TimeCharts
from webapp.screens.explore.pictures import time_note, time_pictures
from webapp.screens.explore.resolve import metric_of, usual_rate
from webapp.screens.findings import ShownFinding, as_heading, below_heading, names_apart, shown_finding
from webapp.screens.results.columns import COLUMNS, Column

# The list of imports, and what an import brought: its tests, and each file with its reason.

# The form for values entered by hand, and the comparison of such values.

# Labels with a column, and their dimensions in comparisons.
DIMENSIONS = {"host": "host", "controller": "controller", "drive": "model", "layout": "layout"}


@operator_action
def enter_values_action(request: HttpRequest) -> HttpResponse:
    try:
        made = enter_values(_entered(request.POST), by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("imports")
    return redirect("import", made.number)


def _entered(form: Mapping[str, str]) -> Entered:
    """Raises Refusal."""
    return Entered(
        name=" ".join(form.get("name", "").split()),
        unit=form.get("unit", "").strip(),
        lower_is_better=form.get("better") != "higher",
        differs=form.get("differs", "").strip(),
        values=read_values(form.get("values", "")),
        labels=read_labels(form.get("labels", "")),
        note=form.get("note", "").strip(),
        on=_date(form.get("on", "")),
    )


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise Refusal("entered_date", f"`{text[:20]}` is not a date, such as 2009-05-22.") from error


def comparison_of_entered(imported: Import) -> str:
    """The address that compares the values, with the first ones as baseline; "" for other imports."""
    origins = list(imported.origins.filter(tool=TOOL).prefetch_related("results").order_by("number"))
    keys = [key for origin in origins for result in origin.results.all() for key in result.metrics]
    if not keys or entered_metric(keys[0]) is None:
        return ""
    name = _differing(origins, imported.labels)
    query = {
        "import": imported.number,
        "metric": keys[0],
        "x": "imported",
        "series": DIMENSIONS.get(name, FACT_PREFIX + name),
    }
    return f"{reverse('explore')}?{urlencode(query | {'baseline': _labels(origins[0])[name]})}"


def _labels(origin: Origin) -> dict[str, str]:
    dimensions = {name: getattr(origin, name) for name in DIMENSIONS}
    return {**{name: text for name, text in dimensions.items() if text}, **origin.other}


def _differing(origins: list[Origin], common: Mapping[str, str]) -> str:
    """The label that is not common to all values."""
    return next(name for name in _labels(origins[0]) if name not in common)


# The table of the tests of an import: labels, factors and values that any of its tests states, one line a test.

_LABELS = ("host", "controller", "model", "serial", "tool")
_VALUES = ("iops", "bytes_per_s", "latency_mean", "latency_p95", "latency_p99", "latency_max")


@dataclass(frozen=True)
class TestRow:
    number: int
    direction: str
    repeat: int
    cells: tuple[tuple[str, str], ...]  # CSS classes and text
    stated: str  # without a column, and not of all tests: `layout: RAID 5 · cache policy: write back`


@dataclass(frozen=True)
class TestTable:
    columns: tuple[Column, ...]
    rows: tuple[TestRow, ...]
    common: str  # the same for all rows, so without a column: `Host: lab1 · Block size: 4 KiB · tray: A`


def table_of(results: Sequence[ResultRow]) -> TestTable:
    """One row for each result. A column that would be empty, or the same in all of several rows, is left out."""
    factors = [name for name in FACTORS if any(name in row.point for row in results)]
    labels = [name for name in _LABELS if any(getattr(row, name) for row in results)]
    first = metric_of(results)
    values = [key for key in _VALUES if any(METRICS[key].of(row) is not None for row in results)]
    values.sort(key=lambda key: key != first)  # stable
    named = [COLUMNS[name] for name in (*labels, *factors)]
    fixed = [column for column in named if len(results) > 1 and len({column.text(row) for row in results}) == 1]
    columns = (*(column for column in named if column not in fixed), *(COLUMNS[key] for key in values))
    stated = [_stated(row) for row in results]
    common = [each for each in stated[0] if all(each in of_row for of_row in stated)] if len(stated) > 1 else []
    rows = (
        _row(row, columns, [each for each in of_row if each not in common])
        for row, of_row in zip(results, stated, strict=True)
    )
    in_words = [f"{column.label}: {column.text(results[0])}" for column in fixed]
    return TestTable(columns, tuple(rows), " · ".join([*in_words, *common]))


def _row(result: ResultRow, columns: Sequence[Column], stated: Sequence[str]) -> TestRow:
    cells = tuple((_style(each, result), each.text(result)) for each in columns)
    return TestRow(result.trial, result.direction, result.repeat, cells, " · ".join(stated))


def _style(column: Column, result: ResultRow) -> str:
    """The usual rate of the block size is bold: bandwidth of large blocks, IOPS of small ones."""
    usual = " fw-bold" if column.key == usual_rate(result) else ""
    return f"num{usual}" if column.numeric else "nowrap"


def _stated(row: ResultRow) -> list[str]:
    """`name: value` of labels and metrics without a column, without the steps in which a tool prints latencies."""
    known = ((_stated_metric(name), value) for name, value in row.metrics.items() if name not in METRICS)
    metrics = [f"{metric.label}: {metric.format(value)}" for metric, value in known if metric]
    facts = [f"{name}: {text}" for name, text in row.facts.items() if not name.startswith("device.")]
    return [*facts, *metrics]


def _stated_metric(name: str) -> Metric | None:
    return CPU_PER_IO if name == IMPORTED else entered_metric(name)


FIRST_FINDINGS = 3  # with their pictures; the others are listed table by table
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
    """Own imports, newest first."""
    imports = Import.objects.select_related("created_by").filter(slug=None)
    context = {
        "own": Paginator(imports, PER_PAGE).get_page(request.GET.get("page")),
        "label_fields": LABEL_FIELDS.items(),
        "result_fields": RESULT_FIELDS,
        "entered_labels": DIMENSIONS,
        "formats": sorted({*FORMATS, "fio-log"}),
    }
    return render(request, "screens/imports.html", context)


@page
def references_page(request: HttpRequest) -> HttpResponse:
    """The reference library."""
    return render(
        request, "screens/references.html", {"references": Import.objects.exclude(slug=None).order_by("title")}
    )


@page
def import_page(request: HttpRequest, number: int) -> HttpResponse:
    imported = get_object_or_404(Import, number=number)
    choices = CHOICES if imported.slug is None else {RESULTS: CHOICES[RESULTS]}
    shown = request.GET.get("show", RESULTS)
    shown = shown if shown in choices else RESULTS
    page_number = request.GET.get("page") or _page_of_test(imported, request.GET.get("test", ""))
    pages = Paginator(_listed(imported, shown), PER_PAGE).get_page(page_number)
    ids = [result.pk for result in pages] if shown == RESULTS else []
    refused, conclusions = refused_by_reason(imported), stored(imported)
    context = {
        "import": imported,
        "choices": choices,
        "shown": shown,
        "pages": pages,
        "table": table_of(read_rows(results_of(imported).filter(pk__in=ids))) if ids else None,
        "timed": timed_tests(imported) if ids else (),
        "empty": EMPTY[shown],
        "reasons": _reasons(imported, dict(list(refused.items())[:SHOWN_REASONS])),
        "further_reasons": max(0, len(refused) - SHOWN_REASONS),
        "may_undo": may_undo(imported, person(request)),
        "comparison": comparison_of_entered(imported),
        "bench": bench_address(products_of_import(imported)),
        "is_open_about": imported.files_refused > 0 and not imported.results_made,
        **_answer(imported, conclusions or Conclusions()),
        "ceiling_form": ceiling_form(import_owners(imported), reverse("import", args=[imported.number])),
        "is_making": imported.results_made > 0 and conclusions is None and imported.state == ImportState.DONE,
    }
    return render(request, "screens/import.html", context)


@dataclass(frozen=True)
class ShownSection:
    title: str
    query: str
    findings: tuple[ShownFinding[ImportFinding], ...]
    others: tuple[str, ...]  # sentences about ratios without a finding


def _answer(imported: Import, conclusions: Conclusions) -> dict[str, object]:
    """The heading, the most important findings, and the others table by table. The first ones are neither dismissed nor
    do they repeat another one."""
    prefix = f"import {imported.number}/"  # before the names of its drives and hosts
    findings = [_without(prefix, finding) for finding in findings_of_import(imported, conclusions)]
    first = [finding for finding in findings if not (finding.is_dismissed or finding.repeats)][:FIRST_FINDINGS]
    names, claim = names_apart(first[0].claim) if first else ("", imported.title)
    further: dict[tuple[str, str], list[ImportFinding]] = {}
    for finding in findings:
        if finding not in first:
            further.setdefault((finding.title, finding.query), []).append(finding)
    stated = {finding.sentence for finding in findings}
    sections = [
        ShownSection(
            title=section.title,
            query=section.query,
            findings=tuple(map(shown_finding, further.get((section.title, section.query), ()))),
            others=tuple(
                sentence for each in section.sentences if (sentence := each.replace(prefix, "")) not in stated
            ),
        )
        for section in conclusions.sections
    ]
    return {
        "heading": as_heading(claim),
        "names": names,
        "doubt": first[0].doubt if first else "",
        "first": below_heading(tuple(map(shown_finding, first)), first[0].claim if first else ""),
        "sections": [section for section in sections if section.findings or section.others],
    }


def _without(prefix: str, finding: ImportFinding) -> ImportFinding:
    sentence, claim = (text.replace(prefix, "") for text in (finding.sentence, finding.claim))
    return structs.replace(finding, sentence=sentence, claim=claim)


@operator_action
def review_action(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """`verdict` "" takes back the review."""
    imported, verdict = get_object_or_404(Import, number=number), str(request.POST.get("verdict", ""))
    reason = str(request.POST.get("reason", ""))
    try:
        if verdict:
            review_finding(of=imported, key=key, verdict=verdict, reason=reason, by=person(request))
        else:
            undo_review(of=imported, key=key, by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
    return redirect(reverse("import", args=[number]) + "#findings")


def _reasons(imported: Import, refused: Mapping[str, int]) -> list[tuple[str, int, list[ImportedFile], int]]:
    """Reason, number of files, the first files, and the number of the others."""
    files = some_refused(imported, refused, SHOWN_FILES) if refused else {}
    return [(reason, count, files[reason], count - len(files[reason])) for reason, count in refused.items()]


def _listed(imported: Import, shown: str) -> QuerySet[Any]:
    return results_of(imported) if shown == RESULTS else files_of(imported, only_refused=shown == REFUSED)


def _page_of_test(imported: Import, test: str) -> int:
    """The page of results that has the test with this number; 1 if there is none."""
    if not re.fullmatch(r"[0-9]{1,9}", test, re.ASCII):
        return 1
    return results_of(imported).filter(origin__number__lt=int(test)).count() // PER_PAGE + 1


def may_undo(imported: Import, user: User) -> bool:
    is_owner = imported.created_by_id == user.pk or user.is_administrator
    return imported.slug is None and user.is_operator and is_owner


CHART_METRICS = {key: METRICS[key].label for key in ("iops", "bytes_per_s", "latency_mean")}


@page
def import_test_page(request: HttpRequest, number: int, test: int) -> HttpResponse:
    imported = get_object_or_404(Import, number=number)
    rows = read_rows(results_of(imported).filter(origin__number=test, origin__series__isnull=False))
    if not rows:
        raise Http404
    metric = request.GET.get("metric", "")
    metric = metric if metric in CHART_METRICS else "iops"
    point = ChartPoint("", "", {Level(row.direction, row.direction, None): (row,) for row in rows}, "")
    refusal = ""
    try:
        lines = time_lines(point, metric)
    except CompareRefused as refused:
        refusal, lines = str(refused), time_lines(replace(point, series={}), metric)
    payload = TimeCharts(lines=lines, logarithmic=False, ceilings=())
    context = {
        "import": imported,
        "test": test,
        "name": rows[0].test,
        "table": table_of(rows),
        "completion_latency": any(row.latency_kind == "clat" for row in rows),
        "choices": CHART_METRICS,
        "metric": metric,
        "lines": lines,
        "refusal": refusal,
        "drawn": any(series.mean for series in lines.series),
        "payload": payload,
        "drawing": Drawing(f"{lines.label} over time", time_pictures(payload), time_note(lines)),
        "names": msgspec.to_builtins(
            [SeriesName(name=row.direction, is_baseline=False, colour=n) for n, row in enumerate(rows)]
        ),
    }
    return render(request, "screens/import_test.html", context)
