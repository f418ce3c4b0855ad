"""The fio logs of a folder, put together by trial while the folder is read."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from webapp.imports import labels
from webapp.imports.errors import ImportRefused
from webapp.imports.formats import fio_log
from webapp.imports.formats.fio_log import Histograms, Kind, Log, LogName
from webapp.imports.log_latencies import Measurements, with_histograms, with_submission
from webapp.imports.measurement import Latency, Measurement, Point
from webapp.imports.reading import Read
from webapp.plans.values import Value
from worker.contract.items import Direction

LOG_FORMAT = "fio-log"
TOOL = "fio"
MAX_OPEN = 8  # trials whose logs are still being read: files come in the order of their names
MAX_OPEN_CHARACTERS = 64 * 1024 * 1024
_PREFIX = "{rw}-iodepth-{iodepth}-numjobs-{numjobs}"  # of fio-plot's bench-fio
_MATCHED = ("pattern", "iodepth", "numjobs", "block_size")

Series = Mapping[Direction, tuple[Point, ...]]


class Trial:
    """The logs of one trial. Latencies are as in the logs: ns in fio 3.x, µs in 2.x."""

    def __init__(self, name: LogName) -> None:
        self.name = name
        self.paths: dict[str, Kind] = {}
        self.characters = 0
        self._hash = hashlib.sha256()
        self._logs: list[Log] = []
        self._series: Series = {}
        self._submission: Series = {}
        self._histograms = Histograms()
        self._problems: dict[Kind, str] = {}
        self._reason = ""
        empty = Measurement(tool=TOOL, direction=None, factors={})
        found = labels.match(_PREFIX, name.prefix)
        self._factors: Mapping[str, Value] = labels.apply(found, empty).measurement.factors if found else {}

    def add(self, name: LogName, read: Read) -> None:
        self.paths[read.path] = name.kind
        self._logs.append(Log(name.kind, name.job, read.text))
        self.characters += len(read.text)
        self._hash.update(f"{name.kind} {name.job} {len(read.text)} {read.text}".encode("utf-8", "surrogatepass"))

    @property
    def digest(self) -> str:
        """Of all logs. Single logs may be equal, such as those of idle jobs."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Compute series and histograms, and forget the texts."""
        try:
            self._series = fio_log.series(self._logs)
        except ImportRefused as refusal:
            self._reason = refusal.message
        try:
            self._submission = fio_log.submission(self._logs)
        except ImportRefused as refusal:
            self._problems[Kind.SUBMISSION] = refusal.message
        try:
            self._histograms = fio_log.histograms(log.text for log in self._logs if log.kind is Kind.HISTOGRAM)
        except ImportRefused as refusal:
            self._problems[Kind.HISTOGRAM] = refusal.message
        self._logs = []

    def belongs_to(self, path: str, measured: Iterable[Measurement]) -> bool:
        """Whether the trial is that of a fio test in a file of the same folder."""
        file, first = PurePosixPath(path), next(iter(measured))
        if first.tool != TOOL or str(file.parent) != self.name.folder:
            return False
        if file.name.startswith(f"{self.name.prefix}."):
            return True
        stated = [name for name in _MATCHED if name in self._factors]
        return bool(stated) and all(first.factors.get(name) == self._factors[name] for name in stated)

    def series(self, version: str) -> Series:
        """`version` of fio, "" if unknown, which counts as 3.x. Raises ImportRefused."""
        if self._reason:
            raise ImportRefused(self._reason)
        unit = _unit_ns(version)
        return {
            direction: tuple(_scaled(point, unit) for point in points) for direction, points in self._series.items()
        }

    def extended(self, measured: Measurements, where: str) -> tuple[Measurements, dict[str, str]]:
        """The measurements of the trial's test with what histogram and submission logs add, and a note for each log.
        `where` is the file of the test."""
        notes = dict.fromkeys(Kind, f"Part of the time series of {where}.")
        kinds = set(self.paths.values())
        if Kind.LATENCY in kinds:
            notes[Kind.COMPLETION] = f"Read, but not used: the time series of {where} has the total latency."
        if Kind.HISTOGRAM in kinds and Kind.HISTOGRAM not in self._problems:
            measured, note = with_histograms(measured, self._histograms)
            notes[Kind.HISTOGRAM] = f"Of the test in {where}. {note}"
        if Kind.SUBMISSION in kinds and Kind.SUBMISSION not in self._problems:
            unit = _unit_ns(measured[0].tool_version)
            means = {way: mean * unit for way, points in self._submission.items() if (mean := _mean_latency(points))}
            measured, note = with_submission(measured, means)
            notes[Kind.SUBMISSION] = f"Of the test in {where}. {note}"
        return measured, {path: notes[kind] for path, kind in self.paths.items()}

    def problem(self, path: str) -> str:
        """Why this log alone cannot be used, "" if it can."""
        return self._problems.get(self.paths[path], "")

    def measurements(self) -> list[Measurement]:
        """The means of the series, as a test of its own; also of a histogram alone. Raises ImportRefused."""
        series, histograms = self.series(""), self._histograms.of
        if not series and not histograms:
            raise ImportRefused(
                "These logs have no bandwidth, IOPS or latency and no histogram. They belong to no imported test."
            )
        note = "Computed from logs only: means over time. Latencies are read as ns, the unit of fio 3."
        return [
            self._measurement(direction, series.get(direction, ()), note)
            for direction in Direction
            if direction in series or direction in histograms
        ]

    def _measurement(self, direction: Direction, points: tuple[Point, ...], note: str) -> Measurement:
        """With the mean of the histogram if there is one, so that mean and percentiles are of the same latency."""
        histogram = self._histograms.of.get(direction)
        latency = Latency(mean_ns=_mean_latency(points))
        if histogram is not None:
            latency = Latency(kind="clat", mean_ns=histogram.mean_ns())
        return Measurement(
            tool=TOOL, name=self.name.prefix[-200:], direction=direction, factors=self._factors,
            iops=_mean(points, "iops"), bytes_per_s=_mean(points, "bytes_per_s"),
            runtime_ms=points[-1].offset_ms if points else None, latency=latency, notes=(note,),
        )  # fmt: skip


def _unit_ns(version: str) -> float:
    """Of the latencies in logs."""
    return 1000.0 if version.removeprefix("fio-").startswith("2") else 1.0


def _scaled(point: Point, unit: float) -> Point:
    if unit == 1 or point.latency_mean_ns is None:
        return point
    return replace(point, latency_mean_ns=point.latency_mean_ns * unit)


def _mean(points: Iterable[Point], name: str) -> float | None:
    """Weighted with the length of the intervals; None if an interval has no value, or without intervals."""
    total, covered = 0.0, 0
    for point in points:
        value: float | None = getattr(point, name)
        if value is None:
            return None
        total, covered = total + value * point.length_ms, covered + point.length_ms
    return total / covered if covered else None


def _mean_latency(points: Iterable[Point]) -> float | None:
    """Weighted with the I/Os of the intervals; None without IOPS or without latencies."""
    known = [point for point in points if point.latency_mean_ns is not None]
    weights = [(point.iops or 0.0) * point.length_ms for point in known]
    if not sum(weights):
        return None
    sums = sum((point.latency_mean_ns or 0.0) * weight for point, weight in zip(known, weights, strict=True))
    return sums / sum(weights)


class LogTrials:
    """The trials of one folder."""

    def __init__(self) -> None:
        self._open: dict[str, Trial] = {}
        self._closed: list[Trial] = []

    def add(self, name: LogName, read: Read) -> None:
        trial = self._open.pop(name.trial, None) or Trial(name)
        self._open[name.trial] = trial  # the last one added to is the last one to be closed
        trial.add(name, read)
        characters = sum(each.characters for each in self._open.values())
        while len(self._open) > MAX_OPEN or (characters > MAX_OPEN_CHARACTERS and len(self._open) > 1):
            oldest = self._open.pop(next(iter(self._open)))
            characters -= oldest.characters
            oldest.close()
            self._closed.append(oldest)

    def ended(self) -> list[Trial]:
        """All trials so far. The next folder starts without any."""
        for trial in self._open.values():
            trial.close()
        found = [*self._closed, *self._open.values()]
        self._open, self._closed = {}, []
        return found
