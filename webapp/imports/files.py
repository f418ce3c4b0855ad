"""What each file of an import becomes: tests with the labels of its path, or a reason why it is left out.

The logs of a fio trial are joined to a time series. It belongs to the test of the same folder with the same file name
or the same pattern, queue depth and jobs; without one, its means are a test of their own.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import msgspec
from django.utils import timezone

from webapp.imports import formats, labels
from webapp.imports.errors import ImportRefused
from webapp.imports.formats import fio_log
from webapp.imports.log_series import LOG_FORMAT, LogTrials, Trial
from webapp.imports.measurement import Measurement, Point
from webapp.imports.plausibility import plausible
from webapp.imports.reading import Read, Refused
from worker.contract.items import Direction

MAX_HELD = 2_000  # files of a folder that wait for its logs


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """The directions of one test: the same tool, name, factors and repeat."""

    measured: tuple[Measurement, ...]
    labels: Mapping[str, str]  # given by hand or by the path, and not factors
    series: Mapping[Direction, tuple[Point, ...]] = {}


class FileRead(msgspec.Struct, kw_only=True):
    path: str
    digest: str = ""  # SHA-256 of the text, of a trial's logs together at the first of them; "" for other logs
    format: str = ""  # formats.FORMATS or LOG_FORMAT, "" if not recognised
    tests: tuple[Test, ...] = ()
    reason: str = ""  # a sentence; "" if the file became tests or part of a series
    notes: tuple[str, ...] = ()


def read_files(
    found: Iterable[Read | Refused],
    pattern: str,
    given: Mapping[str, str],
    columns: Mapping[str, str] = formats.NO_COLUMNS,
) -> Iterator[FileRead]:
    """Each file with its tests or its reason. `given` are labels entered by hand, which count before those of paths;
    `columns` the fields of plain CSV by column. Raises ImportRefused for an invalid pattern."""
    labels.match(pattern, "")
    found = (msgspec.structs.replace(each, path=storable(each.path)) for each in found)
    held: list[FileRead] = []
    trials = LogTrials()
    folder = ""
    for each in found:
        here = str(PurePosixPath(each.path).parent)
        if here != folder or len(held) >= MAX_HELD:
            yield from _joined(held, trials.ended(), pattern, given)
            folder, held = here, []
        held.append(_read(each, pattern, given, columns, trials))
    yield from _joined(held, trials.ended(), pattern, given)


def storable(path: str) -> str:
    """A path with a replacement for what PostgreSQL cannot store: NUL, and bytes that are not UTF-8."""
    return path.replace("\0", "�").encode("utf-8", "backslashreplace").decode()


def _read(
    each: Read | Refused, pattern: str, given: Mapping[str, str], columns: Mapping[str, str], trials: LogTrials
) -> FileRead:
    if isinstance(each, Refused):
        return FileRead(path=each.path, reason=each.reason)
    content = each.text.replace("\r\n", "\n").rstrip()  # copies with other line ends are the same
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    name = fio_log.log_name(each.path)
    try:
        if name is not None and fio_log.sniff(each.text[: formats.HEAD_CHARACTERS]):
            trials.add(name, each)
            return FileRead(path=each.path, format=LOG_FORMAT)
        known, measured = formats.parse(each.text, columns)
        tests, notes = _tests(measured, each.path, pattern, given)
        return FileRead(path=each.path, digest=digest, format=known, tests=tests, notes=notes)
    except ImportRefused as refusal:
        return FileRead(path=each.path, digest=digest, reason=refusal.message)


def _tests(
    measured: Iterable[Measurement], path: str, pattern: str, given: Mapping[str, str]
) -> tuple[tuple[Test, ...], tuple[str, ...]]:
    """Directions of the same test together, and the notes of all."""
    of_path = labels.match(pattern, path) if pattern else {}
    unmatched = ("The pattern for labels does not match this path.",) if of_path is None else ()
    of_path = of_path or {}
    found: dict[object, list[Measurement]] = {}
    rest: dict[object, Mapping[str, str]] = {}
    for one in measured:
        labelled = labels.apply({**of_path, **given}, plausible(one, timezone.now()))
        of = labelled.measurement
        key = (of.tool, of.name, of.repeat, frozenset(of.factors.items()), frozenset(of.other.items()))
        if any(other.direction == of.direction for other in found.get(key, ())):
            raise ImportRefused(f"The file has the test `{of.name}` twice, with the same factors.")
        found.setdefault(key, []).append(of)
        rest[key] = labelled.labels
    tests = tuple(Test(measured=tuple(each), labels=rest[key]) for key, each in found.items())
    notes = dict.fromkeys(note for test in tests for one in test.measured for note in one.notes)
    return tests, (*unmatched, *notes)


def _joined(held: list[FileRead], ended: Iterable[Trial], pattern: str, given: Mapping[str, str]) -> Iterator[FileRead]:
    """The files of a folder, with the series of its logs at their tests."""
    by_path = {file.path: file for file in held}
    for trial in ended:
        _place(trial, by_path, pattern, given)
    yield from held


def _place(trial: Trial, files: dict[str, FileRead], pattern: str, given: Mapping[str, str]) -> None:
    owners = [
        (file, test) for file in files.values() for test in file.tests if trial.belongs_to(file.path, test.measured)
    ]
    logs = [files[path] for path in trial.paths if path in files]
    for log in logs:
        log.reason = trial.problem(log.path)
    first = next((log for log in logs if not log.reason), logs[0])
    try:
        if len(owners) != 1:
            measured, notes = trial.extended(tuple(trial.measurements()), first.path)
            first.tests, notes_of_test = _tests(measured, first.path, pattern, given)
            first.digest, series = trial.digest, trial.series(measured[0].tool_version)
            first.tests = tuple(msgspec.structs.replace(test, series=series) for test in first.tests)
        else:
            ((file, test),) = owners
            series = trial.series(test.measured[0].tool_version)
            measured, notes = trial.extended(test.measured, file.path)
            joined = msgspec.structs.replace(test, measured=measured, series=series)
            file.tests = tuple(joined if t is test else t for t in file.tests)
            notes_of_test = ()
    except ImportRefused as refusal:
        for log in logs:
            log.reason = log.reason or refusal.message
        return
    for log in logs:
        log.notes = () if log.reason else (notes[log.path],)
    first.notes = notes_of_test or first.notes
