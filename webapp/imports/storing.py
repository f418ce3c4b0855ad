"""Files of an import as rows of the database, in batches."""

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from sys import intern
from typing import Any

import msgspec
from django.db import connection, transaction
from django.db.models import Max, Prefetch, QuerySet

from webapp.core.errors import Refusal
from webapp.imports.files import FileRead, Test, tests_of
from webapp.imports.formats.fio_log import Kind, log_name
from webapp.imports.log_series import ADDING, LOG_FORMAT, TOOL, Trial, has_all_rates
from webapp.imports.measurement import Latency, Measurement
from webapp.imports.selectors import timed_tests
from webapp.imports.values import ImportRefused
from webapp.plans.points import point_key
from webapp.plans.values import Value
from webapp.results.metrics import BANDWIDTH_STEP, IOPS_STEP, LATENCY_STEP, PERCENTILE_STEP
from webapp.results.models import BOTH, NO_IO, Import, ImportedFile, Origin, Result, known
from worker.contract.items import Direction
from worker.contract.packing import least_count, pack, supported_percentile, unpack

# Which test of an import the logs of a fio trial belong to.
#
# It is the only test of fio whose options name these logs (write_bw_log=…); otherwise the only one in the same folder
# with the same file name; otherwise with the same pattern, queue depth and jobs; otherwise with the same name of its
# job, which is fio's default name of logs. Of several runs in one file, it is that of the last one, because fio
# overwrites its logs. Its rates must be those of the logs (`log_series.problem`). Without such a test, the
# means of the logs are a test of their own.
#
# A request joins its logs to its own tests first, then to those of earlier requests of the same import; all of them
# are stored before their logs. Logs that come after others of their trial cannot be joined. If the series of the
# first ones does not have all rates of its test, it is removed too. A histogram of the first ones stays, because its
# note says how many I/Os it has.

# A measurement as a stored result, and what logs add to a stored result.

_PERCENTILES = {"p50_ns": 50.0, "p95_ns": 95.0, "p99_ns": 99.0, "p999_ns": 99.9}


def result_of(origin: Origin, measured: Measurement, unknown_time: datetime, imported: Import) -> Result:
    latency = measured.latency
    point = dict(measured.factors)
    iops, bytes_per_s = _rates(measured)
    return Result(
        origin=origin,
        direction=(measured.direction.value if measured.direction else BOTH) if measured.is_io else NO_IO,
        point=point,
        point_key=point_key(point),
        measured_at=measured.measured_at or unknown_time,
        ios=measured.ios,
        bytes=measured.bytes,
        runtime_ms=measured.runtime_ms,
        iops=iops,
        bytes_per_s=bytes_per_s,
        latency_kind=latency.kind,
        latency_min_ns=latency.min_ns,
        latency_mean_ns=latency.mean_ns,
        latency_max_ns=latency.max_ns,
        latency_stddev_ns=latency.stddev_ns,
        reference=imported.slug is not None,
        **_extensible(measured),
    )


def _extensible(measured: Measurement) -> dict[str, Any]:
    """The fields to which logs may add something later."""
    return {
        **{field: _percentile(measured, percent) for field, percent in _PERCENTILES.items()},
        "latency": pack(measured.latency.histogram),
        "metrics": {**measured.metrics, **_steps(measured)},
    }


def measured_of(result: Result) -> Measurement:
    """What a stored result has of the values that logs can be compared with, or can add to."""
    stated = {percent: getattr(result, field) for field, percent in _PERCENTILES.items()}
    return Measurement(
        tool=TOOL, tool_version=known(result.origin).tool_version, factors={},
        direction=None if result.direction in (BOTH, NO_IO) else Direction(result.direction),
        ios=result.ios, iops=result.iops, bytes_per_s=result.bytes_per_s, runtime_ms=result.runtime_ms,
        metrics=result.metrics,
        latency=Latency(
            kind=result.latency_kind, histogram=unpack(result.latency),
            percentiles={percent: ns for percent, ns in stated.items() if ns is not None},
        ),
    )  # fmt: skip


def extend(result: Result, measured: Measurement) -> None:
    """Store what logs added to `measured_of` the result."""
    fields = _extensible(measured)
    for name, value in fields.items():
        setattr(result, name, value)
    result.save(update_fields=list(fields))


def _rates(measured: Measurement) -> tuple[float | None, float | None]:
    """IOPS and bytes/s; if the tool states only one of both and the block size, the other one follows."""
    iops, bytes_per_s, block = measured.iops, measured.bytes_per_s, measured.factors.get("block_size")
    if not isinstance(block, int) or not block:
        return iops, bytes_per_s
    if iops is None and bytes_per_s is not None:
        return bytes_per_s / block, bytes_per_s
    if bytes_per_s is None and iops is not None:
        return iops, iops * block
    return iops, bytes_per_s


def _steps(measured: Measurement) -> dict[str, float]:
    """Of latencies as the format states them; of rates from their printed digits."""
    latency, block = measured.latency, measured.factors.get("block_size")
    steps = {LATENCY_STEP: latency.step_ns, PERCENTILE_STEP: latency.percentile_step_ns}
    if measured.ios is None:  # with a count, the step of a rate is one I/O
        iops, bandwidth = measured.iops_step, measured.bytes_per_s_step
        if isinstance(block, int) and block:  # a rate that follows from the other one has its step
            iops, bandwidth = iops or bandwidth / block, bandwidth or iops * block
        steps |= {IOPS_STEP: iops, BANDWIDTH_STEP: bandwidth}
    return {name: step for name, step in steps.items() if step}


def _percentile(measured: Measurement, percent: float) -> int | None:
    """As the tool states it, otherwise computed from its histogram. None if there are too few I/Os for it."""
    if _ios(measured) < least_count(percent):
        return None
    stated = measured.latency.percentiles.get(percent)
    return round(stated) if stated is not None else supported_percentile(measured.latency.histogram, percent)


def _ios(measured: Measurement) -> float:
    """Infinite if it does not follow from what the tool states."""
    known = measured.ios if measured.ios is not None else measured.latency.histogram.total
    if not known and measured.iops and measured.runtime_ms:
        known = math.ceil(measured.iops * measured.runtime_ms / 1000)
    return known or math.inf


def left_out(measured: Sequence[Measurement]) -> Iterator[str]:
    for measurement in measured:
        few = [
            f"p{percent:g}" for percent in measurement.latency.percentiles if _ios(measurement) < least_count(percent)
        ]
        if few:
            ios = _ios(measurement)
            yield f"{', '.join(few)} left out: {ios:,} I/Os are too few. A percentile needs 10 I/Os beyond it."


INCOMPLETE = "Its logs came in several requests, so the time series was left out. Send them in one request."
_HAS_SERIES = (
    "The test of these logs has a time series already, from logs of an earlier request. Send them in one request."
)
LISTED_NOTES = 20  # of a test
_MATCHED = ("pattern", "iodepth", "numjobs")


class FioTest(msgspec.Struct):
    path: str  # of its file
    name: str  # of its job
    version: str
    at: datetime | None
    number: int | None  # of its origin; None if its file was imported before
    factors: tuple[Value, ...]  # of _MATCHED
    earlier: bool  # sent by an earlier request
    has_series: bool
    trial: str = ""  # whose logs this request joined to it


class FioTests:
    """The tests of fio that were read so far, by folder."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self._named: dict[str, list[FioTest]] = {}  # by trials that their options name

    def add(
        self, path: str, name: str, version: str, at: datetime | None, factors: Mapping[str, Value],
        number: int | None, *, earlier: bool = False, has_series: bool = False, log_names: Iterable[str] = (),
    ) -> None:  # fmt: skip
        matched = tuple(_shared(factors.get(factor)) for factor in _MATCHED)
        test = FioTest(path, intern(name), intern(version), at, number, matched, earlier, has_series)
        folder = PurePosixPath(path).parent
        self._folders.setdefault(str(folder), _Folder()).add(test)
        for prefix in log_names:  # relative to the folder in which fio ran, or copied beside the result
            for trial in {str(folder / PurePosixPath(prefix).name), str(folder / prefix)}:
                self._named.setdefault(trial, []).append(test)

    def owner(self, trial: Trial) -> FioTest | None:
        """The test of a trial, None if there is none. Raises ImportRefused if the logs are of several tests."""
        folder = self._folders.get(trial.name.folder)
        named = self._named.get(str(PurePosixPath(trial.name.trial)), [])
        if len({test.path for test in named}) > 1:  # each run overwrote the logs of the one before
            named = []
        for candidates in (named, *(folder.owners(trial) if folder else ())):
            not_earlier = [test for test in candidates if not test.earlier] or candidates
            if len(not_earlier) > 1 and len({test.path for test in not_earlier}) == 1:
                not_earlier = [
                    _of_last_run([test for test in not_earlier if test.name == trial.name.prefix] or not_earlier)
                ]
            if not_earlier:
                return (
                    not_earlier[0] if len(not_earlier) == 1 and not_earlier[0].trial in ("", trial.name.trial) else None
                )
        return None


def _of_last_run(tests: Sequence[FioTest]) -> FioTest:
    """Raises ImportRefused."""
    last = max((test.at for test in tests if test.at is not None), default=None)
    newest = [test for test in tests if test.at == last]
    if len(newest) > 1:
        raise ImportRefused(
            "The name of these logs fits several tests of a file. Give the logs of each job of fio a name of their own "
            "(write_bw_log and others).",
            f"The file is {tests[0].path}.",
        )
    return newest[0]


class _Folder:
    def __init__(self) -> None:
        self._tests: list[FioTest] = []
        self._tests_by_key: dict[object, list[FioTest]] = {}  # by parts of the file name, and by factors
        self._indexed: set[object] = set()

    def add(self, test: FioTest) -> None:
        self._tests.append(test)
        self._tests_by_key, self._indexed = {}, set()

    def owners(self, trial: Trial) -> Iterator[list[FioTest]]:
        """Tests that may be that of a trial, those that say more first."""
        factors, prefix = trial.factors, trial.name.prefix
        stated = tuple(place for place, name in enumerate(_MATCHED) if name in factors)
        self._index(stated)
        by_name = self._tests_by_key.get(("file", prefix), [])
        yield [test for test in by_name if PurePosixPath(test.path).stem == prefix]
        yield by_name
        yield (
            self._tests_by_key.get((stated, tuple(factors[_MATCHED[place]] for place in stated)), []) if stated else []
        )
        yield self._tests_by_key.get(("job", prefix), [])

    def _index(self, stated: tuple[int, ...]) -> None:
        """Find tests without searching them all: a folder may have thousands of tests and of trials."""
        if "names" not in self._indexed:
            self._fill((("file", prefix), test) for test in self._tests for prefix in _prefixes(test.path))
            self._fill((("job", test.name), test) for test in self._tests)
        if stated and stated not in self._indexed:
            self._fill(((stated, tuple(test.factors[place] for place in stated)), test) for test in self._tests)
        self._indexed |= {"names", stated}

    def _fill(self, tests_by_key: Iterable[tuple[object, FioTest]]) -> None:
        for key, test in tests_by_key:
            self._tests_by_key.setdefault(key, []).append(test)


def _shared(value: Value) -> Value:
    """Without a copy of the same text for each test."""
    return intern(value) if isinstance(value, str) else value


def _prefixes(path: str) -> list[str]:
    """`a` and `a.b` of `folder/a.b.json`."""
    parts = PurePosixPath(path).name.split(".")
    return [".".join(parts[:count]) for count in range(1, min(len(parts), 9))]


class Joining:
    """The logs of one request, and the tests that they may belong to."""

    def __init__(self, imported: Import) -> None:
        self._imported = imported
        self._tests = FioTests()
        self.removed: dict[int, str] = {}  # tests whose series, or values, are incomplete: their numbers and trials
        self._alone: dict[str, int | None] = {}  # trials that are tests of their own, and the numbers of these tests
        for path in imported.files.filter(format=LOG_FORMAT, reason=INCOMPLETE).values_list("path", flat=True):
            self._note_alone(path, None)

    def know(
        self, origin: Origin, file: ImportedFile, first: Result, *, earlier: bool = False, has_series: bool = False,
        log_names: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """A stored test and one of its results."""
        if file.format == LOG_FORMAT:
            self._note_alone(file.path, origin.number)
        elif origin.tool == TOOL:
            has_series = has_series or INCOMPLETE in origin.notes
            self._tests.add(
                file.path, origin.name, origin.tool_version, first.measured_at, first.point, origin.number,
                earlier=earlier, has_series=has_series, log_names=log_names,
            )  # fmt: skip

    def know_as_imported(self, file: FileRead) -> None:
        """A file whose content was imported before."""
        for test in file.tests:
            first = test.measured[0]
            if first.tool == TOOL:
                self._tests.add(
                    file.path, first.name, first.tool_version, first.measured_at, first.factors, None,
                    log_names=first.log_names,
                )  # fmt: skip

    def _note_alone(self, path: str, number: int | None) -> None:
        name = log_name(path)
        if name:
            self._alone[name.trial] = number

    def files(self, trial: Trial, imported_before: Mapping[str, ImportRefused]) -> list[FileRead]:
        """The logs of a trial: added to a test, or a test of their own, or the reason why not. `imported_before` has
        reasons by digest."""
        try:
            owner = self._tests.owner(trial)
            if owner:
                return _files(trial, self._joined(trial, owner))
            if trial.digest in imported_before:
                raise imported_before[trial.digest]
            if trial.name.trial in self._alone:
                raise self._refused(trial, self._alone[trial.name.trial])
            return self._on_their_own(trial)
        except ImportRefused as refusal:
            return _files(trial, {}, refusal)

    def _joined(self, trial: Trial, owner: FioTest) -> dict[str, str]:
        """The notes of its logs."""
        if owner.number is None:
            raise ImportRefused(
                "The test of these logs was imported before. If it has no time series, undo that import, then import "
                "the test and its logs together.",
                f"The test is {owner.path}.",
            )
        origin = self._imported.origins.filter(number=owner.number)
        results = Result.objects.filter(origin__in=origin).select_related("origin").order_by("id")
        before = {result: measured_of(result) for result in results}
        if trial.series(owner.version) and owner.has_series:
            stored = origin.values_list("series", flat=True).get()
            if stored and has_all_rates(bytes(stored), tuple(before.values())):
                raise ImportRefused(_HAS_SERIES, f"The test is {owner.path}.")
            raise self._refused(trial, owner.number)
        trial.check(tuple(before.values()))
        series = trial.series(owner.version)
        if series:
            origin.update(series=series)
        owner.trial, owner.has_series = trial.name.trial, owner.has_series or bool(series)
        return _extended(trial, before, owner.path)

    def _on_their_own(self, trial: Trial) -> list[FileRead]:
        path = next((path for path in trial.paths if not trial.problem(path)), trial.paths[0])
        series = trial.series("")
        measured, notes = trial.extended(tuple(trial.measurements()), path)
        tests, notes_of_test = tests_of(measured, path, self._imported.pattern, self._imported.labels)
        files = _files(trial, notes)
        first = next(file for file in files if file.path == path)
        first.tests = tuple(msgspec.structs.replace(test, series=series) for test in tests)
        first.digest, first.notes = trial.digest, notes_of_test
        return files

    def _refused(self, trial: Trial, number: int | None) -> ImportRefused:
        if number is not None:
            self.removed[number] = trial.name.trial
        self._alone[trial.name.trial] = None
        return ImportRefused(INCOMPLETE)


def _extended(trial: Trial, before: Mapping[Result, Measurement], where: str) -> dict[str, str]:
    """Add to stored results what the logs have; the notes of the logs."""
    after, notes = trial.extended(tuple(before.values()), where)
    for (result, measured), extended in zip(before.items(), after, strict=True):
        if extended is not measured:
            extend(result, extended)
    if after and after[0].notes:
        origin = known(next(iter(before)).origin)
        origin.notes = [*origin.notes, *after[0].notes][:LISTED_NOTES]
        origin.save(update_fields=["notes"])
    return notes


def same_content(number: int, path: str) -> ImportRefused:
    return ImportRefused(
        f"The same content was imported before, by import {number}. To change its labels, undo that import first.",
        f"The file is {path}.",
    )


def _files(trial: Trial, notes: Mapping[str, str], reason: ImportRefused | None = None) -> list[FileRead]:
    files = []
    for path in trial.paths:
        file = FileRead(path=path, format=LOG_FORMAT)
        if refusal := trial.problem(path) or reason:
            file.refuse(refusal)
        else:
            file.notes = (notes[path],)
        files.append(file)
    return files


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
            for (origin, of_origin), test in zip(made, file.tests, strict=False):
                self._joining.know(origin, row, of_origin[0], log_names=test.measured[0].log_names)
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
    origins = imported.origins.select_related("file").defer("series").prefetch_related(results)
    return origins.iterator(chunk_size=ROWS)


def _known(digests: set[str]) -> dict[str, ImportRefused]:
    """Content that was imported before, by digest."""
    files = ImportedFile.objects.filter(digest__in=digests).values_list("digest", "imported__number", "path")
    return {digest: same_content(number, path) for digest, number, path in files}


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
