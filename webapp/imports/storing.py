"""Files of an import as rows of the database, in batches."""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db import connection, transaction
from django.db.models import Max

from webapp.core.errors import Refusal
from webapp.imports.errors import ImportRefused
from webapp.imports.files import FileRead, Test
from webapp.imports.measurement import Latency, Measurement
from webapp.plans.points import point_key
from webapp.results.metrics import LATENCY_STEP, PERCENTILE_STEP
from webapp.results.models import BOTH, NO_IO, Import, ImportedFile, Origin, Result
from worker.contract.histogram import least_count, supported_percentile
from worker.contract.packing import pack

BATCH, MAX_BATCH_TESTS = 500, 2_000  # files and their tests in one transaction
ROWS = 1_000  # in one statement
MAX_TESTS = 20_000  # of a file
LOCK = 0x696D706F7274  # key of the advisory lock of all imports
MAX_LABEL = 200
_LABELS = ("host", "controller", "drive", "serial", "layout")
_LISTED_NOTES = 20


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
        self._seen: Counter[object] = Counter()
        for origin in imported.origins.select_related("file").prefetch_related("results").defer("series"):
            self._seen.update({_identity(origin, result): 1 for result in origin.results.all()})
        self.stored = Stored()

    @transaction.atomic
    def add(self, files: Sequence[FileRead]) -> None:
        """Files whose content another import or this one has already are refused. Batches of all imports are stored one
        after the other, so none is stored twice. Raises Refusal if the import has ended or was undone."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        state = Import.objects.filter(pk=self._imported.pk).values_list("state", flat=True).first()
        if state != self._state:
            raise Refusal("import_ended", "The import has ended or was undone meanwhile. Start a new one.")
        self._number = self._imported.origins.aggregate(highest=Max("number"))["highest"] or 0
        known = _known({file.digest for file in files if file.digest})
        rows, origins, results = [], [], []
        for file in files:
            if file.digest and not file.reason and file.digest in known:
                file.tests, file.reason = (), f"The same content was imported before: {known[file.digest]}."
            row = ImportedFile(imported=self._imported, path=file.path, format=file.format, notes=list(file.notes))
            made = self._rows(row, file)
            row.results, row.reason = sum(len(of_origin) for _, of_origin in made), file.reason
            if not file.reason:
                row.digest = file.digest
                known[file.digest] = f"{file.path} of this import"
            rows.append(row)
            origins += [origin for origin, _ in made]
            results += [result for _, of_origin in made for result in of_origin]
        ImportedFile.objects.bulk_create(rows, batch_size=ROWS)
        Origin.objects.bulk_create(origins, batch_size=ROWS)
        Result.objects.bulk_create(results, batch_size=ROWS)
        self._count(rows)

    def _rows(self, row: ImportedFile, file: FileRead) -> list[tuple[Origin, list[Result]]]:
        try:
            if len(file.tests) > MAX_TESTS:
                raise ImportRefused(f"The file has {len(file.tests):,} tests, more than {MAX_TESTS:,}. Split it.")
            return [self._test(row, test) for test in file.tests]
        except ImportRefused as refusal:
            file.reason = refusal.message
            return []

    def _test(self, row: ImportedFile, test: Test) -> tuple[Origin, list[Result]]:
        first = test.measured[0]
        _check_texts(first, test.labels)
        stated = {name: first.other[name] for name in _LABELS if name in first.other} | dict(test.labels)
        self._number += 1
        origin = Origin(
            imported=self._imported, file=row, number=self._number, tool=first.tool, tool_version=first.tool_version,
            name=first.name, other=_others(row.path, test, first), time_known=first.measured_at is not None,
            notes=[*first.notes, *_left_out(test.measured)][:_LISTED_NOTES], series=_series(test),
            **{name: _label(name, stated) for name in _LABELS},
        )  # fmt: skip
        results = [_result(origin, measured, self._unknown_time, self._imported) for measured in test.measured]
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


def _known(digests: set[str]) -> dict[str, str]:
    """Where content was imported before, in words, by digest."""
    found = ImportedFile.objects.filter(digest__in=digests).values_list("digest", "imported__number", "path")
    return {digest: f"{path} of import {number}" for digest, number, path in found}


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


def _series(test: Test) -> bytes | None:
    if not test.series:
        return None
    by_direction = {direction.value: msgspec.to_builtins(points) for direction, points in test.series.items()}
    return zlib.compress(msgspec.json.encode(by_direction))


def _identity(origin: Origin, result: Result) -> object:
    """Results with the same identity are repeats of one test."""
    other = tuple(sorted(origin.other.items()))
    labels = tuple(getattr(origin, name) for name in _LABELS)
    unlabelled = "" if any(labels) else origin.file.path  # may be another drive
    return (
        origin.tool,
        origin.tool_version,
        origin.name,
        *labels,
        unlabelled,
        other,
        result.point_key,
        result.direction,
    )


def _result(origin: Origin, measured: Measurement, unknown_time: datetime, imported: Import) -> Result:
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
        p50_ns=_percentile(measured, 50.0),
        p95_ns=_percentile(measured, 95.0),
        p99_ns=_percentile(measured, 99.0),
        p999_ns=_percentile(measured, 99.9),
        latency=pack(latency.histogram),
        metrics={**measured.metrics, **_steps(latency)},
        reference=imported.slug is not None,
    )


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


def _steps(latency: Latency) -> dict[str, float]:
    steps = {LATENCY_STEP: latency.step_ns, PERCENTILE_STEP: latency.percentile_step_ns}
    return {name: step for name, step in steps.items() if step}


def _percentile(measured: Measurement, percent: float) -> int | None:
    """As the tool states it, otherwise computed from its histogram. None if there are too few I/Os for it."""
    latency = measured.latency
    stated = latency.percentiles.get(percent)
    if stated is None:
        return supported_percentile(latency.histogram, percent)
    return None if _ios(measured) < least_count(percent) else round(stated)


def _ios(measured: Measurement) -> float:
    """Infinite if the tool does not state it."""
    known = measured.ios if measured.ios is not None else measured.latency.histogram.total
    return known or math.inf


def _left_out(measured: Sequence[Measurement]) -> Iterator[str]:
    for one in measured:
        few = [f"p{percent:g}" for percent in one.latency.percentiles if _ios(one) < least_count(percent)]
        if few:
            yield f"{', '.join(few)} left out: {_ios(one):,} I/Os are too few. A percentile needs 10 I/Os beyond it."
