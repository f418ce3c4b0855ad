"""A plan from a file: a fio job file or Sweetspot's YAML, pasted or uploaded. It opens in the editor, unsaved."""

from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.plans.document import MAX_BYTES, PlanDocument, import_plan
from webapp.plans.jobfile import JobFileError, read_job_file
from webapp.screens.access import operator_action, page
from webapp.screens.plans.draft import draft_of
from webapp.screens.plans.form_data import data_of
from webapp.screens.plans.kept import keep

MAX_LINES = 2000  # on the page
KINDS = {"job": "fio job file", "yaml": "YAML of a plan"}


@dataclass(frozen=True)
class NumberedLine:
    number: int
    text: str
    problems: tuple[str, ...]


def import_plan_page(request: HttpRequest) -> HttpResponseBase:
    return read_plan(request) if request.method == "POST" else show_import(request)


@page
def show_import(request: HttpRequest) -> HttpResponse:
    kind = request.GET.get("kind", "job")
    return _page(request, kind if kind in KINDS else "job", "", "")


@operator_action
def read_plan(request: HttpRequest) -> HttpResponse:
    kind = request.POST.get("kind", "")
    kind = kind if kind in KINDS else "job"
    text = request.POST.get("text", "").replace("\r\n", "\n")
    title = request.POST.get("title", "")[:200]
    try:
        text = _uploaded(request.FILES.get("file")) or text
        document = _read(kind, text, title)
    except Refusal as refusal:
        return _page(request, kind, text, title, refusal)
    count = f"{len(document.parts)} part{'s' if len(document.parts) > 1 else ''}"
    said = f"Read from the {KINDS[kind]}: {count}. Check the plan and save it; it is not saved yet."
    keep(request, reverse("new_plan"), data_of(draft_of(document)), said)
    return redirect("new_plan")


def _uploaded(file: "UploadedFile[Any] | None") -> str:
    """The text of an uploaded file; "" without one. Raises Refusal."""
    if file is None:
        return ""
    if (file.size or 0) > MAX_BYTES:
        raise Refusal("file_refused", f"{file.name} is over the limit of {MAX_BYTES // 1024} KiB.")
    raw: bytes = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        words = f"{file.name} is not UTF-8 text: line {line} has byte 0x{raw[error.start]:02x}. Save it as UTF-8."
        raise Refusal("file_refused", words) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(kind: str, text: str, title: str) -> PlanDocument:
    if not text.strip():
        raise Refusal("file_refused", "Paste the file's text, or choose a file.")
    if "\x00" in text:
        raise Refusal("file_refused", "The file contains a NUL character, so it is not a text file.")
    return read_job_file(text, title=title) if kind == "job" else import_plan(text)


def _page(request: HttpRequest, kind: str, text: str, title: str, refusal: Refusal | None = None) -> HttpResponse:
    lines, general = _lines(text, refusal)
    context = {"kind": kind, "kinds": KINDS.items(), "text": text, "title": title, "lines": lines, "general": general}
    return render(request, "screens/plan_import.html", context)


def _lines(text: str, refusal: Refusal | None) -> tuple[list[NumberedLine], list[str]]:
    """The lines of the text with their problems, and the problems of the whole file. Of a long file, only lines with
    problems."""
    if refusal is None:
        return [], []
    if not isinstance(refusal, JobFileError):
        return [], [refusal.message]
    at: dict[int, list[str]] = {}
    for problem in refusal.problems:
        at.setdefault(problem.line, []).append(f"{f'`{problem.option}` ' if problem.option else ''}{problem.message}")
    numbered = enumerate(text.split("\n"), start=1)
    lines = [NumberedLine(number, line, tuple(at.get(number, ()))) for number, line in numbered]
    if len(lines) > MAX_LINES:
        lines = [line for line in lines if line.problems][:MAX_LINES]
    return (lines if any(line.problems for line in lines) else []), at.get(0, [])
