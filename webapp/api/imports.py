"""Imports: results of other tools, sent as files or archives."""

from datetime import datetime
from pathlib import PurePosixPath

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import File, Form, Router, Schema, Status
from ninja.files import UploadedFile
from ninja.pagination import paginate

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.core.errors import NotFound, Refusal
from webapp.imports.labels import read_labels
from webapp.imports.selectors import files_of, refused_by_reason
from webapp.imports.services import (
    add_uploads,
    begin_import,
    check_own,
    check_size,
    end_import,
    read_columns,
    undo_import,
)
from webapp.results.models import Import, ImportedFile

router = Router(tags=["imports"])
NO_FILE = "Send one or more parts `file`: files or archives."


class ImportOut(Schema):
    """`reference` is the slug of a published table, "" for files of a person."""

    number: int
    reference: str
    title: str
    source: str
    source_date: str
    note: str
    pattern: str
    labels: dict[str, str]
    columns: dict[str, str]
    state: str
    files_read: int
    files_refused: int
    results_made: int
    seconds: float
    by: str | None
    created_at: datetime

    @staticmethod
    def resolve_reference(imported: Import) -> str:
        return imported.slug or ""

    @staticmethod
    def resolve_by(imported: Import) -> str | None:
        return imported.created_by.username if imported.created_by else None


class ImportDetail(ImportOut):
    refused: dict[str, int]  # files that were left out, by reason

    @staticmethod
    def resolve_refused(imported: Import) -> dict[str, int]:
        return refused_by_reason(imported)


class ImportedFileOut(Schema):
    path: str
    format: str  # "" if not recognised
    results: int
    reason: str  # why it was left out, else ""
    code: str  # of the reason
    notes: list[str]  # what was assumed, or a detail of the reason


class NewImport(Input):
    """`labels` has a line `name: text` for each label of all files, `columns` a line `column = field` for each column
    of plain CSV whose name is not its field."""

    title: str = ""
    pattern: str = ""
    labels: str = ""
    columns: str = ""
    more: bool = False


def import_with(number: int) -> Import:
    """Raises Refusal import_unknown."""
    imported = Import.objects.select_related("created_by").filter(number=number).first()
    if imported is None:
        raise NotFound("import_unknown", f"There is no import {number}.")
    return imported


@router.get("/imports", response=list[ImportOut])
@paginate(Paged)
def imports(request: HttpRequest) -> QuerySet[Import]:
    """Own imports and references, newest first. Their results: `GET /results?import=3`."""
    return Import.objects.select_related("created_by")


@router.post("/imports", response={201: ImportDetail}, auth=OPERATORS)
def import_files(
    request: HttpRequest, body: Form[NewImport], file: File[list[UploadedFile] | None] = None
) -> Status[Import]:
    """Files, archives or both, at most 512 MiB, as `multipart/form-data`. Answers when all of them are read.

    With `more`, the import takes more files until it is ended, so files can be left out here.
    """
    by, files = operator(request), file or []
    if not files and not body.more:
        raise Refusal("import_empty", NO_FILE)
    check_size(files)
    title = body.title or PurePosixPath((files[0].name if files else "") or "").name
    made = begin_import(
        title=title, pattern=body.pattern, given=read_labels(body.labels), columns=read_columns(body.columns), by=by
    )
    add_uploads(made, files)
    if not body.more:
        end_import(made, by=by)
    return Status(201, import_with(made.number))


@router.post("/imports/{int:number}/files", response=ImportDetail, auth=OPERATORS)
def add_files(request: HttpRequest, number: int, file: File[list[UploadedFile] | None] = None) -> Import:
    """Add files or archives, at most 512 MiB, to one's own import that is not ended. Answers when they are read.

    Send all logs of a fio test in one request, with the test or after it.
    """
    by, imported = operator(request), import_with(number)
    check_own(imported, by)
    if not file:
        raise Refusal("import_empty", NO_FILE)
    check_size(file)
    add_uploads(imported, file)
    return import_with(number)


@router.post("/imports/{int:number}/end", response=ImportDetail, auth=OPERATORS)
def end(request: HttpRequest, number: int) -> Import:
    """End one's own import: it takes no more files. Ending it again changes nothing."""
    by, imported = operator(request), import_with(number)
    check_own(imported, by)
    end_import(imported, by=by)
    return import_with(number)


@router.get("/imports/{int:number}", response=ImportDetail)
def one_import(request: HttpRequest, number: int) -> Import:
    """An import, with the reasons for files that were left out."""
    return import_with(number)


@router.get("/imports/{int:number}/files", response=list[ImportedFileOut])
@paginate(Paged)
def imported_files(request: HttpRequest, number: int, refused: bool = False) -> QuerySet[ImportedFile]:
    """In the order of reading; `refused=true` lists only those that were left out."""
    return files_of(import_with(number), only_refused=refused)


@router.delete("/imports/{int:number}", response={204: None}, auth=OPERATORS)
def undo(request: HttpRequest, number: int) -> Status[None]:
    """Delete an import with its results: one's own, or anybody's as an admin. References cannot be deleted."""
    undo_import(import_with(number), by=operator(request))
    return Status(204, None)
