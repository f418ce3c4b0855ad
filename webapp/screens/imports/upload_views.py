"""Imports from a browser. A script packs folders into tar files of a limited size; without it, the form sends files."""

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.imports.columns import read_columns
from webapp.imports.given_labels import read_labels
from webapp.imports.services import begin_import, check_own, end_import, undo_import
from webapp.imports.uploads import add_uploads, check_size
from webapp.results.models import Import
from webapp.screens.access import operator_action, own_action, person
from webapp.screens.imports.column_preview import column_preview
from webapp.screens.imports.label_preview import label_preview
from webapp.screens.imports.payloads import Added, Begun, ImportProblem
from webapp.screens.payloads import Payload

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
    found = get_object_or_404(Import, number=number)
    try:
        undo_import(found, by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("import", number)
    messages.success(request, f"Import {number} and its {found.results_made:,} results are deleted.")
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
    found = {name: request.POST.get(name, "").strip() for name in ("host", "controller", "drive", "layout")}
    found |= read_labels(request.POST.get("others", ""))
    return {name: text for name, text in found.items() if text}


def _own(request: HttpRequest, number: int) -> Import:
    """Raises Refusal for somebody else's import."""
    found = get_object_or_404(Import, number=number)
    check_own(found, person(request))
    return found


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
