"""Files of an import as rows of the database, in batches."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db import connection, transaction
from django.db.models import Max, Prefetch, QuerySet

from webapp.core.errors import Refusal
from webapp.imports.errors import ImportRefused
from webapp.imports.files import FileRead, Test
from webapp.imports.formats.fio_log import Kind, log_name
from webapp.imports.joining import INCOMPLETE, LISTED_NOTES, Joining, same_content
from webapp.imports.log_series import ADDING, LOG_FORMAT, Trial
from webapp.imports.measurement import Measurement
from webapp.imports.result_rows import left_out, result_of
from webapp.imports.selectors import timed_tests
from webapp.results.models import Import, ImportedFile, Origin, Result

BATCH, MAX_BATCH_TESTS = 500, 2_000  # files and their tests in one transaction
ROWS = 1_000  # in one statement
MAX_TESTS = 20_000  # of a file
LOCK = 0x696D706F7274  # key of the advisory lock of all imports
MAX_LABEL = 200
_LABELS = ("host", "controller", "drive", "serial", "layout")


class Stored(msgspec.Struct):
    """Numbers of files and results so far."""

    files: int = 0
    results: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)  # files by reason


class Store:
    """Writes the files of one import; numbers its tests, and the repeats of the same test on the same product."""

    def __init__(self, imported: Import, *, measured_at: datetime | None = None) -> None:
        self._imported = imported
        self._state = imported.state
        self._unknown_time = measured_at or imported.created_at
        self._number = 0
        self._seen: Counter[int] = Counter()
        self._joining = Joining(imported)
        timed = timed_tests(imported)
        for origin in _stored(imported):
            results = list(origin.results.all())
            self._seen.update({_identity(origin, result): 1 for result in results})
            has_series = origin.number in timed
            self._joining.know(origin, origin.file, results[0], earlier=True, has_series=has_series)
        self.stored = Stored()

    @transaction.atomic
    def add(self, read: Sequence[FileRead | Trial]) -> None:
        """Files whose content another import or this one has already are refused. Batches of all imports are stored one
        after the other, so none is stored twice. Raises Refusal if the import has ended or was undone."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        state = Import.objects.filter(pk=self._imported.pk).values_list("state", flat=True).first()
        if state != self._state:
            raise Refusal("import_ended", "The import has ended or was undone meanwhile. Start a new one.")
        self._number = self._imported.origins.aggregate(highest=Max("number"))["highest"] or 0
        known = _known({each.digest for each in read if each.digest})
        self._write((each for each in read if isinstance(each, FileRead)), known)
        trials = (each for each in read if isinstance(each, Trial))  # their tests are stored now
        self._write((file for trial in trials for file in self._joining.files(trial, known)), known)
        self._remove_incomplete()

    def _write(self, files: Iterable[FileRead], known: dict[str, ImportRefused]) -> None:
        rows, origins, results = [], [], []
        for file in files:
            if file.digest and not file.reason and file.digest in known:
                self._joining.know_as_imported(file)
                file.refuse(known[file.digest])
            row = ImportedFile(imported=self._imported, path=file.path, format=file.format, notes=list(file.notes))
            made = self._rows(row, file)
            row.results, row.reason, row.code = sum(len(of_origin) for _, of_origin in made), file.reason, file.code
            if not file.reason:
                row.digest = file.digest
                known[file.digest] = same_content(self._imported.number, file.path)
            rows.append(row)
            for origin, of_origin in made:
                self._joining.know(origin, row, of_origin[0])
            origins += [origin for origin, _ in made]
            results += [result for _, of_origin in made for result in of_origin]
        ImportedFile.objects.bulk_create(rows, batch_size=ROWS)
        Origin.objects.bulk_create(origins, batch_size=ROWS)
        Result.objects.bulk_create(results, batch_size=ROWS)
        self._count(rows)

    def _remove_incomplete(self) -> None:
        for number, trial in self._joining.removed.items():
            self._remove_series(self._imported.origins.select_related("file").get(number=number), trial)
        self._joining.removed.clear()

    def _remove_series(self, origin: Origin, trial: str) -> None:
        """Of a test whose logs came in several parts; without logs it keeps its values."""
        if origin.file.format == LOG_FORMAT:
            removed = self._logs_of(trial).update(
                results=0, digest="", reason=INCOMPLETE, code="import_refused", notes=[]
            )
            self.stored.refused[INCOMPLETE] += removed
            self.stored.results -= origin.file.results
            origin.delete()
            return
        self._logs_of(trial, without=ADDING).update(notes=[INCOMPLETE])
        origin.series, origin.notes = None, list(dict.fromkeys([*origin.notes, INCOMPLETE]))
        origin.save(update_fields=["series", "notes"])

    def _logs_of(self, trial: str, without: Container[Kind] = ()) -> QuerySet[ImportedFile]:
        """The logs of a trial that are not left out."""
        prefix = f"{trial.removeprefix('./')}_"
        logs = self._imported.files.filter(format=LOG_FORMAT, reason="", path__startswith=prefix)
        names = ((key, log_name(path)) for key, path in logs.values_list("pk", "path"))
        chosen = [key for key, name in names if name and name.trial == trial and name.kind not in without]
        return ImportedFile.objects.filter(pk__in=chosen)

    def _rows(self, row: ImportedFile, file: FileRead) -> list[tuple[Origin, list[Result]]]:
        try:
            if len(file.tests) > MAX_TESTS:
                raise ImportRefused(f"The file has {len(file.tests):,} tests, more than {MAX_TESTS:,}. Split it.")
            return [self._test(row, test) for test in file.tests]
        except ImportRefused as refusal:
            file.reason, file.code = refusal.message, refusal.code
            return []

    def _test(self, row: ImportedFile, test: Test) -> tuple[Origin, list[Result]]:
        first = test.measured[0]
        _check_texts(first, test.labels)
        stated = {name: first.other[name] for name in _LABELS if name in first.other} | dict(test.labels)
        self._number += 1
        origin = Origin(
            imported=self._imported, file=row, number=self._number, tool=first.tool, tool_version=first.tool_version,
            name=first.name, other=_others(row.path, test, first), time_known=first.measured_at is not None,
            notes=[*first.notes, *left_out(test.measured)][:LISTED_NOTES], series=test.series or None,
            **{name: _label(name, stated) for name in _LABELS},
        )  # fmt: skip
        results = [result_of(origin, measured, self._unknown_time, self._imported) for measured in test.measured]
        identities = [_identity(origin, result) for result in results]
        self._seen.update(identities)
        origin.repeat = max(self._seen[identity] for identity in identities)
        return origin, results

    def _count(self, rows: Iterable[ImportedFile]) -> None:
        for row in rows:
            self.stored.files += 1
            self.stored.results += row.results
            if row.reason:
                self.stored.refused[row.reason] += 1


def _stored(imported: Import) -> Iterator[Origin]:
    """The tests of earlier requests, a part at a time, with what identifies their results."""
    results = Prefetch("results", Result.objects.only("origin_id", "point", "point_key", "direction", "measured_at"))
    found = imported.origins.select_related("file").defer("series").prefetch_related(results)
    return found.iterator(chunk_size=ROWS)


def _known(digests: set[str]) -> dict[str, ImportRefused]:
    """Content that was imported before, by digest."""
    found = ImportedFile.objects.filter(digest__in=digests).values_list("digest", "imported__number", "path")
    return {digest: same_content(number, path) for digest, number, path in found}


def _check_texts(measured: Measurement, labels: Mapping[str, str]) -> None:
    """PostgreSQL stores neither NUL nor lone surrogates."""
    texts = (measured.tool_version, measured.name, *measured.notes, *labels, *labels.values())
    for text in (*texts, *measured.other, *measured.other.values(), *measured.metrics):
        if "\0" in text or text != text.encode("utf-8", "replace").decode():
            raise ImportRefused(f"A text has a NUL or an invalid character: `{ascii(text)[:60]}`.")


def _label(name: str, labels: Mapping[str, str]) -> str:
    text = labels.get(name, "")
    if len(text) > MAX_LABEL:
        raise ImportRefused(f"The label {name} has {len(text)} characters, more than {MAX_LABEL}.")
    return text


def _others(path: str, test: Test, first: Measurement) -> dict[str, str]:
    """Labels and options without a column. The folder tells tests without labels apart."""
    others = {name: text for name, text in test.labels.items() if name not in _LABELS}
    folder, _, _ = path.rpartition("/")
    stated = {name: text for name, text in first.other.items() if name not in _LABELS}
    return {**stated, **others, **({"folder": folder} if folder else {})}


def _identity(origin: Origin, result: Result) -> int:
    """Results with the same identity are repeats of one test. A hash, because there may be hundreds of thousands."""
    other = tuple(sorted(origin.other.items()))
    labels = tuple(getattr(origin, name) for name in _LABELS)
    unlabelled = "" if any(labels) else origin.file.path  # may be another drive
    test = (origin.tool, origin.tool_version, origin.name, *labels, unlabelled, other)
    return hash((*test, result.point_key, result.direction))
