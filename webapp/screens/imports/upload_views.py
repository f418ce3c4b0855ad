"""Imports from a browser. A script packs folders into tar files of a limited size; without it, the form sends files."""

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.imports import formats, labels
from webapp.imports.formats import PLAIN_CSV, plain_csv
from webapp.imports.formats.fio_log import log_name
from webapp.imports.labels import read_labels
from webapp.imports.measurement import Measurement
from webapp.imports.services import (
    add_uploads,
    begin_import,
    check_own,
    check_size,
    end_import,
    read_columns,
    undo_import,
)
from webapp.plans.factors import FACTORS
from webapp.results.metrics import METRICS
from webapp.results.models import Import
from webapp.screens.access import operator_action, own_action, person
from webapp.screens.payloads import Payload

# Data that the pages of imports send to their scripts.


class Begun(Payload, frozen=True, kw_only=True):
    """An import without files: where its files are sent, where it is ended, and its page."""

    files_url: str
    end_url: str
    url: str


class Added(Payload, frozen=True, kw_only=True):
    """What became of the files of one request."""

    files: int
    results: int
    refused: int


class ImportProblem(Payload, frozen=True, kw_only=True):
    """Why a request was refused."""

    problem: str


class PathLabels(Payload, frozen=True, kw_only=True):
    """The labels that the pattern finds in one path: `drive: PM9A3 · Queue depth: 32`; "" if it does not match."""

    path: str
    text: str


class ColumnPreview(Payload, frozen=True, kw_only=True):
    """Columns of a CSV file, none if it is another file, and its first row as it is read: `read · IOPS: 10.2k`; or why
    the row is not read."""

    columns: tuple[str, ...]
    problem: str
    row: str


class LabelPreview(Payload, frozen=True, kw_only=True):
    """`problem` says why the pattern is not valid, "" otherwise."""

    suggested: str  # a pattern for these paths, "" if none of the usual ones fits
    problem: str
    matched: int  # paths that the pattern matches
    of: int
    logs: int  # of fio, which are not in `of`: each joins a test of its folder
    examples: tuple[PathLabels, ...]  # the first matches
    unmatched: tuple[str, ...]  # all other paths, which get no labels


# How the first row of a CSV file is read, before anything is stored.

MAX_HEAD = 64 * 1024
_SHOWN_COLUMNS = 60


def column_preview(stated: str, head: str) -> ColumnPreview:
    """`stated` are lines `column = field`, `head` the first lines of a file. Without columns if the file is no CSV or
    the table of a known tool."""
    rows = [line for line in head[:MAX_HEAD].replace("\r\n", "\n").split("\n") if line.strip()][:2]
    names = plain_csv.head_of(rows[0]) if rows else []
    if len(names) < 2 or formats.recognised(head[:MAX_HEAD]) not in ("", PLAIN_CSV):
        return ColumnPreview(columns=(), problem="", row="")
    columns = tuple(name[:60] for name in names[:_SHOWN_COLUMNS])
    try:
        (first,) = plain_csv.parse("\n".join(rows), read_columns(stated))
    except Refusal as refusal:
        return ColumnPreview(columns=columns, problem=refusal.message, row="")
    return ColumnPreview(columns=columns, problem="", row=_column_preview_in_words(first))


def _column_preview_in_words(measured: Measurement) -> str:
    """`read · Block size: 4 KiB · IOPS: 10.2k · p99 latency: 180 µs · firmware: A1`"""
    latency = measured.latency
    values = {
        "iops": measured.iops, "bytes_per_s": measured.bytes_per_s, "latency_min": latency.min_ns,
        "latency_mean": latency.mean_ns, "latency_max": latency.max_ns, "latency_stddev": latency.stddev_ns,
    }  # fmt: skip
    factors = measured.factors
    return " · ".join(
        [
            measured.direction.value if measured.direction else "read + write",
            *([f"name: {measured.name}"] if measured.name else []),
            *(f"{factor.label}: {factor.format(factors[name])}" for name, factor in FACTORS.items() if name in factors),
            *(
                f"{METRICS[key].label}: {METRICS[key].format(value)}"
                for key, value in values.items()
                if value is not None
            ),
            *(
                f"p{percent:g} latency: {METRICS['latency_p99'].format(ns)}"
                for percent, ns in latency.percentiles.items()
            ),
            *(f"{name}: {text}" for name, text in measured.other.items()),
        ]
    )


# What a pattern for labels finds in paths, before anything is stored.

SHOWN_PATHS = 8


def label_preview(pattern: str, paths: Sequence[str]) -> LabelPreview:
    """`paths` are also of logs: fio's logs join a test of their folder, so they need no match of their own."""
    suggested = labels.suggest(paths)
    try:
        labels_by_path = {path: labels.match(pattern, path) for path in paths} if pattern else {}
    except Refusal as refusal:
        return LabelPreview(
            suggested=suggested, problem=refusal.message, matched=0, of=len(paths), logs=0, examples=(), unmatched=()
        )
    logs = _logs_of_tests([path for path, of_path in labels_by_path.items() if of_path is None], paths)
    tests = {path: of_path for path, of_path in labels_by_path.items() if path not in logs}
    matches = {path: of_path for path, of_path in tests.items() if of_path is not None}
    return LabelPreview(
        suggested=suggested,
        problem="",
        matched=len(matches),
        of=len(paths) - len(logs),
        logs=len(logs),
        examples=tuple(PathLabels(path=path, text=_in_words(matches[path])) for path in [*matches][:SHOWN_PATHS]),
        unmatched=tuple(path for path in tests if path not in matches),
    )


def _logs_of_tests(unmatched: Sequence[str], paths: Sequence[str]) -> set[str]:
    """Logs of fio in folders that have other files too."""
    folders = {PurePosixPath(path).parent for path in paths if log_name(path) is None}
    return {path for path in unmatched if log_name(path) is not None and PurePosixPath(path).parent in folders}


def _in_words(of_path: dict[str, str]) -> str:
    """`drive: PM9A3 · Queue depth: 32`."""
    labelled = labels.apply(of_path, Measurement(tool="", direction=None, factors={}))
    factors = labelled.measurement.factors
    words = [f"{factor.label}: {factor.format(factors[name])}" for name, factor in FACTORS.items() if name in factors]
    return " · ".join([*(f"{name}: {text}" for name, text in labelled.labels.items()), *words])


MAX_PATHS = 2_000


@operator_action
def begin_import_action(request: HttpRequest) -> HttpResponse:
    """An import for files that the script sends one after another; or, without scripts, with the files of the form."""
    by_script = request.headers.get("Accept") == "application/json"
    try:
        return _json(_begun(_begin(request))) if by_script else _import_form(request)
    except Refusal as refusal:
        if by_script:
            return _refused(refusal)
        messages.error(request, refusal.message)
        return redirect("imports")


def _import_form(request: HttpRequest) -> HttpResponse:
    """Raises Refusal."""
    files = request.FILES.getlist("file")
    if not files:
        raise Refusal("import_empty", "Choose files, an archive or a folder.")
    check_size(files)
    made = _begin(request)
    add_uploads(made, files)
    end_import(made, by=person(request))
    return redirect("import", made.number)


def _begin(request: HttpRequest) -> Import:
    """Raises Refusal."""
    first = next((file.name or "" for file in request.FILES.getlist("file")), "")
    title, pattern = request.POST.get("title", "") or first, request.POST.get("pattern", "").strip()
    columns = read_columns(request.POST.get("columns", ""))
    return begin_import(title=title, pattern=pattern, given=_given(request), columns=columns, by=person(request))


@operator_action
def add_import_files(request: HttpRequest, number: int) -> HttpResponse:
    """Files of the script; as JSON what became of them."""
    files = request.FILES.getlist("file")
    try:
        check_size(files)
        stored = add_uploads(_own(request, number), files)
    except Refusal as refusal:
        return _refused(refusal)
    return _json(Added(files=stored.files, results=stored.results, refused=stored.refused.total()))


@operator_action
def end_import_action(request: HttpRequest, number: int) -> HttpResponse:
    try:
        end_import(_own(request, number), by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
    return redirect("import", number)


@operator_action
def undo_import_action(request: HttpRequest, number: int) -> HttpResponse:
    imported = get_object_or_404(Import, number=number)
    try:
        undo_import(imported, by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("import", number)
    messages.success(request, f"Import {number} and its {imported.results_made:,} results are deleted.")
    return redirect("imports")


@own_action
def preview_import_labels(request: HttpRequest) -> HttpResponse:
    """What a pattern finds in paths: a line each in `paths`. Nothing is stored."""
    paths = request.POST.get("paths", "").splitlines()[:MAX_PATHS]
    pattern = request.POST.get("pattern", "").strip()
    return _json(label_preview(pattern, paths))


@own_action
def preview_import_columns(request: HttpRequest) -> HttpResponse:
    """How the first row of a CSV file is read: `head` has the first lines of the file. Nothing is stored."""
    return _json(column_preview(request.POST.get("columns", ""), request.POST.get("head", "")))


def _given(request: HttpRequest) -> dict[str, str]:
    """Labels by hand: `host`, `controller`, `drive`, and lines `name: text` in `others`."""
    label_texts = {name: request.POST.get(name, "").strip() for name in ("host", "controller", "drive", "layout")}
    label_texts |= read_labels(request.POST.get("others", ""))
    return {name: text for name, text in label_texts.items() if text}


def _own(request: HttpRequest, number: int) -> Import:
    """Raises Refusal for somebody else's import."""
    imported = get_object_or_404(Import, number=number)
    check_own(imported, person(request))
    return imported


def _json(payload: Payload) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(payload), content_type="application/json")


def _refused(refusal: Refusal) -> HttpResponse:
    answer = _json(ImportProblem(problem=refusal.message))
    answer.status_code = 422
    return answer


def _begun(made: Import) -> Begun:
    return Begun(
        files_url=reverse("add_import_files", args=(made.number,)),
        end_url=reverse("end_import", args=(made.number,)),
        url=reverse("import", args=(made.number,)),
    )
