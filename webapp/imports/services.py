"""Begin an import, add files and uploads to it, end it, undo it; store references."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import F, ProtectedError
from msgspec.structs import replace

from webapp.core.errors import Refusal, nearest
from webapp.core.models import Counter as StoredCounter
from webapp.core.models import User
from webapp.core.services import audit, count, counted
from webapp.imports import labels
from webapp.imports.files import FileRead, Found, read_files
from webapp.imports.formats import NO_COLUMNS
from webapp.imports.formats.plain_csv import FIELDS_IN_WORDS, LABELS, RESULTS, can_be, part_of
from webapp.imports.labels import FACTOR_OF
from webapp.imports.log_series import Trial
from webapp.imports.reading.contents import read_all, read_in_turn
from webapp.imports.reading.limits import LeftOut, Limits, Read, Refused
from webapp.imports.reading.order import in_order
from webapp.imports.storing import BATCH, MAX_BATCH_TESTS, Store, Stored
from webapp.plans.factors import FACTORS
from webapp.results.models import Import, ImportState

# Columns of plain CSV, stated by hand: a line `column = field` each.

MAX_COLUMNS = 100
MAX_NAME = 200


def read_columns(lines: str) -> dict[str, str]:
    """Column -> field. Raises Refusal for a line that is none, an unknown field, and a field of two columns."""
    fields_by_column: dict[str, str] = {}
    for line in filter(str.strip, lines.splitlines()):
        name, _, field = map(str.strip, line.rpartition("="))
        if not name or not field:
            raise _refused(
                f"`{line.strip()[:60]}` does not say what a column is. Write column = field, such as IO/s = iops."
            )
        if name in fields_by_column:
            raise _refused(f"The column `{name[:60]}` is stated twice.")
        fields_by_column[name] = FACTOR_OF.get(field, field)
    check_columns(fields_by_column)
    return fields_by_column


def check_columns(columns: Mapping[str, str]) -> None:
    """Raises Refusal."""
    if len(columns) > MAX_COLUMNS or any(len(name) > MAX_NAME for name in columns):
        raise _refused(f"State at most {MAX_COLUMNS} columns, each with a name of at most {MAX_NAME} characters.")
    for field in columns.values():
        if not can_be(field):
            raise _refused(f"`{field[:60]}` is not a field.{_near(field)} {FIELDS_IN_WORDS}")
    parts = [part_of(field) for field in columns.values()]
    if twice := [name for name, field in columns.items() if parts.count(part_of(field)) > 1]:
        names = " and ".join(f"`{name[:60]}`" for name in twice[:2])
        raise _refused(f"{names} have the same field. State one column for each field.")


def _near(field: str) -> str:
    near = nearest(field.lower(), [*RESULTS, *LABELS, *FACTORS, "direction", "name"])
    return f" Did you mean `{near}`?" if near else ""


def _refused(words: str) -> Refusal:
    return Refusal("import_columns", words)


MAX_TITLE = 200
MAX_LABELS = 40
MAX_LABEL = 200


@transaction.atomic
def begin_import(
    *, title: str, pattern: str, given: Mapping[str, str], by: User | None, columns: Mapping[str, str] = NO_COLUMNS
) -> Import:
    """A new import without files. Raises Refusal for a missing title, an invalid pattern, long labels, or columns of
    plain CSV with unknown fields."""
    title = " ".join(title.split())
    if "\0" in "".join((title, pattern, *given, *given.values(), *columns)):
        raise Refusal("import_labels", "Title, pattern, labels and columns must not contain a NUL character.")
    if not title or len(title) > MAX_TITLE:
        raise Refusal("import_title", f"Give the import a title of at most {MAX_TITLE} characters.")
    labels.match(pattern, "")
    _check_labels(given)
    check_columns(columns)
    made = Import.objects.create(
        number=next_number(), title=title, pattern=pattern, labels=dict(given), columns=dict(columns),
        state=ImportState.READING, created_by=by,
    )  # fmt: skip
    audit(by=by, action="import.begin", on=made, detail={"title": title})
    return made


def next_number() -> int:
    """A number is never used twice, because saved comparisons name imports by it. Waits for other transactions."""
    count(StoredCounter.IMPORTS, "")
    return counted(StoredCounter.IMPORTS, "")


def check_own(imported: Import, by: User) -> None:
    """Raises Refusal for somebody else's import."""
    if imported.created_by_id != by.pk:
        raise Refusal("import_of_another", f"Import {imported.number} is not yours. Start your own.")


def _check_labels(given: Mapping[str, str]) -> None:
    if len(given) > MAX_LABELS or any(len(name) + len(text) > MAX_LABEL for name, text in given.items()):
        raise Refusal("import_labels", f"Give at most {MAX_LABELS} labels, each with at most {MAX_LABEL} characters.")


def add_paths(
    imported: Import, *paths: Path, limits: Limits | None = None, progress: Callable[[Stored], None] = lambda _: None
) -> Stored:
    """Add files, and all files of folders and archives. Each batch of files is a transaction of its own, so the batches
    before an interruption stay stored. Raises Refusal if the import has ended."""
    return add_found(imported, read_all(paths, limits), progress=progress)


def add_found(
    imported: Import, files_found: Found, *, max_refused: int | None = None,
    progress: Callable[[Stored], None] = lambda _: None,
) -> Stored:  # fmt: skip
    """Add files that are being read. If more than `max_refused` are left out, for whatever reason, the rest is not
    read. Raises Refusal if the import has ended."""
    started = time.monotonic()
    if imported.state != ImportState.READING:
        raise Refusal("import_ended", f"Import {imported.number} has ended. Start a new one for more files.")
    store = Store(imported)
    before = Stored()
    for files in _batches(read_files(files_found, imported.pattern, imported.labels, imported.columns)):
        store.add(files)
        enough = max_refused is not None and store.stored.refused.total() > max_refused
        if enough:
            words = f"More than {max_refused:,} files are left out, so the files after them were not read."
            store.add(
                [FileRead(path="", reason=f"{words} Send only files of results.", code="import_too_many_refused")]
            )
        _count(imported, store.stored, before, time.monotonic() - started)
        before = Stored(store.stored.files, store.stored.results, store.stored.refused.copy())
        started = time.monotonic()
        progress(store.stored)
        if enough:
            break
    return store.stored


def add_read(imported: Import, files: Iterable[FileRead]) -> None:
    """Add files that were read before, in one transaction. Raises Refusal if the import has ended."""
    store = Store(imported)
    store.add(list(files))
    _count(imported, store.stored, Stored(), 0.0)


def _batches(read: Iterable[FileRead | Trial]) -> Iterator[list[FileRead | Trial]]:
    batch: list[FileRead | Trial] = []
    files = tests = 0
    for each in read:
        batch.append(each)
        files += len(each.paths) if isinstance(each, Trial) else 1
        tests += 1 if isinstance(each, Trial) else len(each.tests)
        if files >= BATCH or tests >= MAX_BATCH_TESTS:
            yield batch
            batch, files, tests = [], 0, 0
    if batch:
        yield batch


def _count(imported: Import, now: Stored, before: Stored, seconds: float) -> None:
    Import.objects.filter(pk=imported.pk).update(
        files_read=F("files_read") + now.files - before.files,
        results_made=F("results_made") + now.results - before.results,
        files_refused=F("files_refused") + now.refused.total() - before.refused.total(),
        seconds=F("seconds") + seconds,
    )


@transaction.atomic
def end_import(imported: Import, *, by: User | None) -> Import:
    """No more files. Ending an import twice changes nothing."""
    locked = Import.objects.select_for_update().get(pk=imported.pk)
    if locked.state == ImportState.READING:
        locked.state = ImportState.DONE
        locked.save(update_fields=["state"])
        detail = {"files": locked.files_read, "results": locked.results_made, "refused": locked.files_refused}
        audit(by=by, action="import.end", on=locked, detail=detail)
    return locked


@transaction.atomic
def undo_import(imported: Import, *, by: User | None) -> None:
    """Delete everything that the import brought. Raises Refusal for a reference, and for somebody else's import;
    Import.DoesNotExist if it was undone meanwhile."""
    if imported.slug is not None:
        raise Refusal(
            "import_reference",
            "References are part of Sweetspot and cannot be deleted. Pages show them only on request.",
        )
    if by is not None and not by.is_administrator and imported.created_by_id != by.pk:
        raise Refusal("import_of_another", f"Only its owner or an admin may undo import {imported.number}.")
    locked = Import.objects.select_for_update().get(pk=imported.pk)
    audit(by=by, action="import.undo", on=locked, detail={"title": locked.title, "results": locked.results_made})
    try:
        locked.delete()
    except ProtectedError as error:
        used = ", ".join(sorted(map(str, error.protected_objects)))
        raise Refusal(
            "import_is_baseline",
            f"Import {imported.number} is the baseline of {used}. Remove this baseline on the page Trend first.",
        ) from error


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a reference. `date` is as the source states it; `measured_at` is its first day."""

    slug: str
    title: str
    source: str
    date: str
    note: str
    digest: str  # of its data
    measured_at: datetime


@transaction.atomic
def store_reference(published: Published, files: Iterable[FileRead]) -> Import | None:
    """Store a published table in place of the reference with the same slug; None if that has the same digest."""
    old = Import.objects.select_for_update().filter(slug=published.slug).first()
    if old is not None and old.digest == published.digest:
        return None
    made = old or Import(number=next_number(), slug=published.slug)
    made.title, made.source, made.source_date = published.title, published.source, published.date
    made.note, made.digest, made.state = published.note, published.digest, ImportState.DONE
    made.files_read = made.files_refused = made.results_made = 0
    made.save()
    made.files.all().delete()  # with their results
    store = Store(made, measured_at=published.measured_at)
    store.add(list(files))
    stored = store.stored
    _count(made, stored, Stored(), 0.0)
    audit(by=None, action="import.reference", on=made, detail={"title": made.title, "results": stored.results})
    return made


@transaction.atomic
def remove_references(*, keep: Collection[str]) -> tuple[str, ...]:
    """Delete the references with other slugs, whose data files are gone, and that are no baseline; their slugs."""
    removed = []
    for old in Import.objects.exclude(slug=None).exclude(slug__in=keep):
        slug = str(old.slug)
        try:
            with transaction.atomic():
                audit(by=None, action="import.reference_removed", on=old, detail={"title": old.title})
                old.delete()
        except ProtectedError:  # runs are judged by it
            continue
        removed.append(slug)
    return tuple(sorted(removed))


# Files that were sent in one request, by a form, a script or the API.

PACKED = "folder.tar"  # name of the archives that our script makes of folders; the paths inside count
MAX_BYTES = 512 * 1024**2  # of one request
LIMITS = Limits(total_bytes=2 * 1024**3, cpu_s=4.0)
MAX_REFUSED = 10_000  # files that became no results: they take CPU time and rows, and only a few bytes of an archive

Uploads = Iterable["UploadedFile[Any]"]


def check_size(files: Uploads) -> None:
    """Raises Refusal if there are too many bytes for one request."""
    if sum(file.size or 0 for file in files) > MAX_BYTES:
        words = f"At most {MAX_BYTES // 1024**2} MiB can be sent at once."
        raise Refusal("import_too_large", f"{words} On the server, `manage.py import_results` has no such limit.")


def add_uploads(imported: Import, files: Uploads) -> Stored:
    """Raises Refusal if the import has ended."""
    in_turn = sorted(files, key=lambda file: in_order(file.name or ""))
    return add_found(imported, _files_in(in_turn), max_refused=MAX_REFUSED)


def _files_in(files: Uploads) -> Iterator[Read | Refused | LeftOut]:
    for each in read_in_turn(_copies(files), LIMITS):
        yield replace(each, path=each.path.removeprefix(f"{PACKED}/"))
        del each  # otherwise its text is in memory while the next one is read


def _copies(files: Uploads) -> Iterator[tuple[str, Path]]:
    """Name and copy of each file, until the next one is taken. A name may be too long for a file system. Files with the
    same name come from different folders, so the second one gets a folder `2`."""
    seen: Counter[str] = Counter()
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "upload")
            with path.open("wb") as copy:
                for chunk in file.chunks():
                    copy.write(chunk)
            name = PurePosixPath(file.name or "").name or path.name
            seen[name] += 1
            yield name if seen[name] == 1 else f"{seen[name]}/{name}", path
