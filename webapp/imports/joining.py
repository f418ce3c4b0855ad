"""Which test of an import the logs of a fio trial belong to.

It is the only test of fio in the same folder with the same file name; otherwise with the same pattern, queue depth and
jobs; otherwise with the same name of its job, which is fio's default name of logs. Of several runs in one file, it is
that of the last one, because fio overwrites its logs. Its rates must be those of the logs (`log_check`). Without such a
test, the means of the logs are a test of their own.

A request joins its logs to its own tests first, then to those of earlier requests of the same import; all of them are
stored before their logs. Logs that come after others of their trial cannot be joined. If the series of the first ones
does not have all rates of its test, it is removed too. A histogram of the first ones stays, because its note says how
many I/Os it has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from sys import intern

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.files import FileRead, tests_of
from webapp.imports.formats.fio_log import log_name
from webapp.imports.log_series import LOG_FORMAT, TOOL, Trial, has_all_rates
from webapp.imports.measurement import Measurement
from webapp.imports.result_rows import extend, measured_of
from webapp.plans.values import Value
from webapp.results.models import Import, ImportedFile, Origin, Result, known

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

    def add(
        self, path: str, name: str, version: str, at: datetime | None, factors: Mapping[str, Value],
        number: int | None, *, earlier: bool = False, has_series: bool = False,
    ) -> None:  # fmt: skip
        matched = tuple(_shared(factors.get(one)) for one in _MATCHED)
        test = FioTest(path, intern(name), intern(version), at, number, matched, earlier, has_series)
        self._folders.setdefault(str(PurePosixPath(path).parent), _Folder()).add(test)

    def owner(self, trial: Trial) -> FioTest | None:
        """The test of a trial, None if there is none. Raises ImportRefused if the logs are of several tests."""
        folder = self._folders.get(trial.name.folder)
        for found in folder.owners(trial) if folder else ():
            own = [test for test in found if not test.earlier] or found
            if len(own) > 1 and len({test.path for test in own}) == 1:
                own = [_of_last_run([test for test in own if test.name == trial.name.prefix] or own)]
            if own:
                return own[0] if len(own) == 1 and own[0].trial in ("", trial.name.trial) else None
        return None


def _of_last_run(tests: Sequence[FioTest]) -> FioTest:
    """Raises ImportRefused."""
    last = max((test.at for test in tests if test.at is not None), default=None)
    found = [test for test in tests if test.at == last]
    if len(found) > 1:
        raise ImportRefused(
            "The name of these logs fits several tests of a file. Give the logs of each job of fio a name of their own "
            "(write_bw_log and others).",
            f"The file is {tests[0].path}.",
        )
    return found[0]


class _Folder:
    def __init__(self) -> None:
        self._tests: list[FioTest] = []
        self._found: dict[object, list[FioTest]] = {}  # by parts of the file name, and by factors
        self._indexed: set[object] = set()

    def add(self, test: FioTest) -> None:
        self._tests.append(test)
        self._found, self._indexed = {}, set()

    def owners(self, trial: Trial) -> Iterator[list[FioTest]]:
        """Tests that may be that of a trial, those that say more first."""
        factors, prefix = trial.factors, trial.name.prefix
        stated = tuple(place for place, name in enumerate(_MATCHED) if name in factors)
        self._index(stated)
        by_name = self._found.get(("file", prefix), [])
        yield [test for test in by_name if PurePosixPath(test.path).stem == prefix]
        yield by_name
        yield self._found.get((stated, tuple(factors[_MATCHED[place]] for place in stated)), []) if stated else []
        yield self._found.get(("job", prefix), [])

    def _index(self, stated: tuple[int, ...]) -> None:
        """Find tests without searching them all: a folder may have thousands of tests and of trials."""
        if "names" not in self._indexed:
            self._fill((("file", prefix), test) for test in self._tests for prefix in _prefixes(test.path))
            self._fill((("job", test.name), test) for test in self._tests)
        if stated and stated not in self._indexed:
            self._fill(((stated, tuple(test.factors[place] for place in stated)), test) for test in self._tests)
        self._indexed |= {"names", stated}

    def _fill(self, found: Iterable[tuple[object, FioTest]]) -> None:
        for key, test in found:
            self._found.setdefault(key, []).append(test)


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
        self, origin: Origin, file: ImportedFile, first: Result, *, earlier: bool = False, has_series: bool = False
    ) -> None:
        """A stored test and one of its results."""
        if file.format == LOG_FORMAT:
            self._note_alone(file.path, origin.number)
        elif origin.tool == TOOL:
            has_series = has_series or INCOMPLETE in origin.notes
            self._tests.add(
                file.path, origin.name, origin.tool_version, first.measured_at, first.point, origin.number,
                earlier=earlier, has_series=has_series,
            )  # fmt: skip

    def know_as_imported(self, file: FileRead) -> None:
        """A file whose content was imported before."""
        for test in file.tests:
            first = test.measured[0]
            if first.tool == TOOL:
                self._tests.add(file.path, first.name, first.tool_version, first.measured_at, first.factors, None)

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
                "The test of these logs was imported before. To add them, undo that import, then import the test and "
                "its logs together.",
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
