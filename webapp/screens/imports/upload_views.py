"""Files that a browser sends. Its script packs folders into tar files of a limited size; without scripts, the form
sends files."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.imports import labels
from webapp.imports.measurement import Measurement
from webapp.imports.reading import Limits, Read, Refused, read
from webapp.imports.services import add_found, begin_import, end_import, undo_import
from webapp.imports.storing import Stored
from webapp.plans.factors import FACTORS
from webapp.results.models import Import
from webapp.screens.access import operator_action, own_action, person
from webapp.screens.imports.payloads import Added, Begun, ImportProblem, LabelPreview, PathLabels
from webapp.screens.payloads import Payload

PACKED = "folder.tar"  # name of the script's tar files; the paths inside count
MAX_BYTES = 512 * 1024**2  # of one request
UPLOAD_LIMITS = Limits(total_bytes=2 * 1024**3, files=50_000)
MAX_PATHS, SHOWN_PATHS = 2_000, 8


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
    _check_size(files)
    made = _begin(request)
    add_found(made, _all(files))
    end_import(made, by=person(request))
    return redirect("import", made.number)


def _begin(request: HttpRequest) -> Import:
    """Raises Refusal."""
    first = next((file.name or "" for file in request.FILES.getlist("file")), "")
    title, pattern = request.POST.get("title", "") or first, request.POST.get("pattern", "").strip()
    return begin_import(title=title, pattern=pattern, given=_given(request), by=person(request))


@operator_action
def add_import_files(request: HttpRequest, number: int) -> HttpResponse:
    """Files of the script; as JSON what became of them."""
    files = request.FILES.getlist("file")
    try:
        _check_size(files)
        stored: Stored = add_found(_own(request, number), _all(files))
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
    suggested = labels.suggest(paths)
    try:
        found = [(path, labels.match(pattern, path)) for path in paths] if pattern else []
    except Refusal as refusal:
        return _json(LabelPreview(suggested=suggested, problem=refusal.message, matched=0, of=len(paths), examples=()))
    examples = tuple(PathLabels(path=path, text=_in_words(of_path)) for path, of_path in found[:SHOWN_PATHS])
    matched = sum(of_path is not None for _, of_path in found)
    return _json(LabelPreview(suggested=suggested, problem="", matched=matched, of=len(paths), examples=examples))


def _in_words(of_path: dict[str, str] | None) -> str:
    if of_path is None:
        return ""
    labelled = labels.apply(of_path, Measurement(tool="", direction=None, factors={}))
    factors = labelled.measurement.factors.items()
    words = [f"{FACTORS[name].label}: {FACTORS[name].format(value)}" for name, value in factors]
    return " · ".join([*(f"{name}: {text}" for name, text in labelled.labels.items()), *words])


def _given(request: HttpRequest) -> dict[str, str]:
    """Labels by hand: `host`, `controller`, `drive`, and lines `name: text` in `others`."""
    found = {name: request.POST.get(name, "").strip() for name in ("host", "controller", "drive", "layout")}
    for line in request.POST.get("others", "").splitlines():
        name, colon, text = line.partition(":")
        if line.strip() and not (colon and name.strip() and text.strip()):
            raise Refusal("import_labels", f"`{line.strip()[:60]}` is not a label. Write name: text.")
        found[name.strip()] = text.strip()
    return {name: text for name, text in found.items() if name and text}


def _own(request: HttpRequest, number: int) -> Import:
    """Raises Refusal for somebody else's import."""
    found = get_object_or_404(Import, number=number)
    if found.created_by_id != person(request).pk:
        raise Refusal("import_of_another", f"Import {number} is not yours. Start your own.")
    return found


def _json(payload: Payload) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(payload), content_type="application/json")


def _refused(refusal: Refusal) -> HttpResponse:
    answer = _json(ImportProblem(problem=refusal.message))
    answer.status_code = 400
    return answer


def _begun(made: Import) -> Begun:
    return Begun(
        files_url=reverse("add_import_files", args=(made.number,)),
        end_url=reverse("end_import", args=(made.number,)),
        url=reverse("import", args=(made.number,)),
    )


def _check_size(files: Iterable["UploadedFile[Any]"]) -> None:
    if sum(file.size or 0 for file in files) > MAX_BYTES:
        raise Refusal(
            "import_too_large",
            f"At most {MAX_BYTES // 1024**2} MiB can be sent at once. On the server, `manage.py import_results` has no "
            "such limit.",
        )


def _all(files: Iterable["UploadedFile[Any]"]) -> Iterator[Read | Refused]:
    for file in files:
        yield from _uploaded(file)


def _uploaded(file: "UploadedFile[Any]") -> Iterator[Read | Refused]:
    """The files in an upload. Its name cannot lead out of the temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        name = PurePosixPath(file.name or "").name or "upload"
        path = Path(folder, name)
        with path.open("wb") as copy:
            for chunk in file.chunks():
                copy.write(chunk)
        for each in read(path, UPLOAD_LIMITS):
            yield msgspec.structs.replace(each, path=each.path.removeprefix(f"{PACKED}/"))
