"""What each file of an import becomes: tests with the labels of its path, or a reason why it is left out.

The logs of a fio trial are put together. `joining` gives them to the test that they belong to.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
from django.utils import timezone
from msgspec.structs import replace

from webapp.imports import formats, labels
from webapp.imports.formats import fio_log
from webapp.imports.log_series import LOG_FORMAT, LogTrials, Trial, update_hash
from webapp.imports.measurement import Latency, Measurement
from webapp.imports.reading.limits import LeftOut, Read, Refused
from webapp.imports.values import ImportRefused

# Latencies of a file that contradict each other, and impossible dates: they are left out, and a note says so.

EARLIEST = datetime(1995, 1, 1, tzinfo=UTC)  # a clock that was never set shows 1970 or 1980
LATEST = timedelta(days=1)  # after the import: clocks are wrong, and time zones differ
ROUNDING = 1.1  # tools round to few digits, and a percentile of fio is the end of a bin of its histogram

_EMPTY_LOG = (
    "This log of fio is empty: the job did no such I/O, or its engine is synchronous, like psync, and has no "
    "submission latency."
)
_CONTRADICT = "The minimum, mean and maximum latency in the file contradict each other. They are left out."
_DO_NOT_ASCEND = "The latency percentiles in the file do not ascend. They are left out."
_OUTSIDE = "Latency percentiles in the file are outside its minimum and maximum. All latencies are left out."


def plausible(measured: Measurement, now: datetime) -> Measurement:
    """The measurement without values that cannot be true, and a note for each kind that is left out."""
    latency, notes = _latency(measured.latency)
    when = measured.measured_at
    if when is not None and not EARLIEST <= when <= now + LATEST:
        notes.append(f"The date {when:%Y-%m-%d} in the file is not possible. The date of the import is used.")
        when = None
    if not notes:
        return measured
    return replace(measured, latency=latency, measured_at=when, notes=(*measured.notes, *notes))


def _latency(stated: Latency) -> tuple[Latency, list[str]]:
    notes = []
    percentiles = [value for _, value in sorted(stated.percentiles.items())]
    if not _ascend(stated.min_ns, stated.mean_ns, stated.max_ns, factor=ROUNDING):
        notes.append(_CONTRADICT)
        stated = replace(stated, min_ns=None, mean_ns=None, max_ns=None, stddev_ns=None)
    if not _ascend(*percentiles):
        notes.append(_DO_NOT_ASCEND)
        stated = replace(stated, percentiles={})
    elif not _ascend(stated.min_ns, *percentiles, stated.max_ns, factor=ROUNDING):
        return Latency(kind=stated.kind), [_OUTSIDE]
    return stated, notes


def _ascend(*values: float | None, factor: float = 1.0) -> bool:
    known = [value for value in values if value is not None]
    return all(lower <= upper * factor for lower, upper in pairwise(known))


Found = Iterable[Read | Refused | LeftOut]


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """The directions of one test: the same tool, name, factors and repeat."""

    measured: tuple[Measurement, ...]
    labels: Mapping[str, str]  # given by hand or by the path, and not factors
    series: bytes = b""  # of its logs, as Origin stores it


class FileRead(msgspec.Struct, kw_only=True):
    path: str
    digest: str = ""  # SHA-256 of the text, of a trial's logs together at the first of them; "" for other logs
    format: str = ""  # formats.FORMATS or LOG_FORMAT, "" if not recognised
    tests: tuple[Test, ...] = ()
    reason: str = ""  # a sentence; "" if the file became tests or part of a series
    code: str = ""  # of the reason
    notes: tuple[str, ...] = ()

    def refuse(self, refusal: ImportRefused) -> None:
        self.tests, self.reason, self.code, self.notes = (), refusal.message, refusal.code, refusal.details


def read_files(
    files_found: Found, pattern: str, given: Mapping[str, str], columns: Mapping[str, str] = formats.NO_COLUMNS
) -> Iterator[FileRead | Trial]:
    """Each file with its tests or its reason, and the logs of each trial together. `given` are labels entered by hand,
    which count before those of paths; `columns` the fields of plain CSV by column. Raises ImportRefused for an invalid
    pattern."""
    labels.match(pattern, "")
    trials = LogTrials()
    for file_found in files_found:
        file_found = msgspec.structs.replace(file_found, path=storable(file_found.path))
        name = fio_log.log_name(file_found.path)
        if name and isinstance(file_found, Read) and fio_log.sniff(file_found.text[: formats.HEAD_CHARACTERS]):
            yield from trials.add(name, file_found)
        elif name and isinstance(file_found, Read) and not file_found.text.strip():
            yield FileRead(path=file_found.path, format=LOG_FORMAT, reason=_EMPTY_LOG, code="import_refused")
        else:
            if file := _read(file_found, pattern, given, columns):
                yield file
            if name and not (file and file.format):
                yield from trials.lose(name, file_found.path)
        del file_found  # otherwise its text is in memory while the next one is read
    yield from trials.ended()


def storable(path: str) -> str:
    """A path with a replacement for what PostgreSQL cannot store: NUL, and bytes that are not UTF-8."""
    return path.replace("\0", "�").encode("utf-8", "backslashreplace").decode()


def _read(
    each: Read | Refused | LeftOut, pattern: str, given: Mapping[str, str], columns: Mapping[str, str]
) -> FileRead | None:
    if isinstance(each, LeftOut):
        return None
    if isinstance(each, Refused):
        return FileRead(path=each.path, reason=each.reason, code=each.code)
    content = each.text.replace("\r\n", "\n").rstrip()  # copies with other line ends are the same
    digest = hashlib.sha256()
    update_hash(digest, content)
    try:
        parsed = formats.parse(each.text, columns)
        tests, notes = tests_of(parsed.measured, each.path, pattern, given)
    except ImportRefused as refusal:
        return FileRead(path=each.path, digest=digest.hexdigest(), reason=refusal.message, code=refusal.code)
    return FileRead(
        path=each.path, digest=digest.hexdigest(), format=parsed.format, tests=tests, notes=(*parsed.notes, *notes)
    )


def tests_of(
    measured: Iterable[Measurement], path: str, pattern: str, given: Mapping[str, str]
) -> tuple[tuple[Test, ...], tuple[str, ...]]:
    """Directions of the same test together, and the notes of all. Raises ImportRefused."""
    of_path = labels.match(pattern, path) if pattern else {}
    unmatched = ("The pattern for labels does not match this path.",) if of_path is None else ()
    of_path = of_path or {}
    measurements_of_tests: dict[object, list[Measurement]] = {}
    rest: dict[object, Mapping[str, str]] = {}
    for measurement in measured:
        labelled = labels.apply({**of_path, **given}, plausible(measurement, timezone.now()))
        of = labelled.measurement
        key = (of.tool, of.name, of.repeat, frozenset(of.factors.items()), frozenset(of.other.items()))
        if any(other.direction == of.direction for other in measurements_of_tests.get(key, ())):
            raise ImportRefused(f"The file has the test `{of.name}` twice, with the same factors.")
        measurements_of_tests.setdefault(key, []).append(of)
        rest[key] = labelled.labels
    tests = tuple(
        Test(measured=tuple(measurements), labels=rest[key]) for key, measurements in measurements_of_tests.items()
    )
    notes = dict.fromkeys(note for test in tests for measurement in test.measured for note in measurement.notes)
    return tests, (*unmatched, *notes)
