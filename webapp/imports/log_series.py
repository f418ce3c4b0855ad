"""The fio logs of a folder, put together by trial while the folder is read."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from webapp.imports import labels
from webapp.imports.formats import fio_log
from webapp.imports.formats.fio_log import Histograms, HistogramSum, Kind, Log, LogName
from webapp.imports.measurement import Latency, Measurement, Point
from webapp.imports.reading.limits import Read
from webapp.imports.values import KIB, ImportRefused
from webapp.plans.values import Value
from worker.contract.items import Direction
from worker.contract.packing import Histogram, merge, pack, unpack

# Whether the time series of logs can be that of a test: their sums must be those of the test.
#
# They are not if a log of a job is missing, if the logs are of another test with the same name, or if fio appended
# the logs of several runs to one file.

_MOST_SHARE = 1.15  # share of the test's I/Os or bytes, of the time that the logs cover
_MISSING = 0.15  # of the test, beside the last interval, which fio does not log
_MOST_RISE = 2.0  # of the rate in the time that the logs do not cover, relative to the highest rate in them
_OTHER_LATENCY, _LEAST_NS = 1.5, 1000.0  # factor between the means; fio 2.x logs whole µs

_TOO_MANY = (
    ": they belong to another test or to several runs, one of them is a copy, or most of their intervals have no I/O. "
    "In the last case, use a larger log_avg_msec."
)
_TOO_FEW = (
    ": logs of some jobs are missing or came in another request, or they belong to another test. Send all logs of a "
    "test in one request."
)


class Totals(msgspec.Struct, frozen=True):
    """Sums of a series. `latency_mean_ns` is weighted with the I/Os, and in the unit of the log."""

    end_ms: int
    ios: float | None
    bytes: float | None
    latency_mean_ns: float | None
    peak_iops: float = 0.0  # of an interval
    peak_bytes_per_s: float = 0.0


def totals(points: Sequence[Point], latency_mean_ns: float | None) -> Totals:
    return Totals(
        end_ms=points[-1].offset_ms, ios=_total(points, "iops"), bytes=_total(points, "bytes_per_s"),
        latency_mean_ns=latency_mean_ns,
        peak_iops=max(point.iops or 0.0 for point in points),
        peak_bytes_per_s=max(point.bytes_per_s or 0.0 for point in points),
    )  # fmt: skip


def _total(points: Sequence[Point], name: str) -> float | None:
    values = [(getattr(point, name), point.length_ms) for point in points]
    return None if any(value is None for value, _ in values) else sum(value * ms for value, ms in values) / 1000


def problem(
    of: Mapping[Direction, Totals], stated: Sequence[Measurement], jobs: Mapping[Kind, int]
) -> ImportRefused | None:
    """Why the series cannot be that of the test with these measurements. `jobs`: numbers of logs."""
    ways = [measurement.direction for measurement in stated]
    others = [way for way, way_totals in of.items() if way not in ways and (way_totals.ios or way_totals.bytes)]
    if others and None not in ways:
        return ImportRefused(
            f"The logs have I/Os of the direction {others[0]}, but the test has none: they belong to another test."
        )
    problems = (_problem_of(of, measurement, jobs) for measurement in stated)
    return next(filter(None, problems), None)


def _problem_of(
    of: Mapping[Direction, Totals], measurement: Measurement, jobs: Mapping[Kind, int]
) -> ImportRefused | None:
    logged = [way_totals for way, way_totals in of.items() if measurement.direction in (way, None)]
    if not logged or not measurement.runtime_ms:
        return None
    covered = min(1.0, max(totals.end_ms for totals in logged) / measurement.runtime_ms)
    for rate, sums, peaks, step, kind, unit in (
        (measurement.iops, [way.ios for way in logged], [way.peak_iops for way in logged], 1, Kind.IOPS, "I/Os"),
        (
            measurement.bytes_per_s, [way.bytes for way in logged], [way.peak_bytes_per_s for way in logged], KIB,
            Kind.BANDWIDTH, "bytes",
        ),
    ):  # fmt: skip
        known = [value for value in sums if value is not None]
        if not rate or len(known) < len(sums):
            continue
        share = sum(known) * 1000 / (rate * measurement.runtime_ms)
        rounding = jobs.get(kind, 0) * step / rate  # fio logs whole I/Os and KiB per second
        if share > max(1.0 + rounding, _MOST_SHARE * covered):
            return ImportRefused(f"The logs have more {unit} than the test{_TOO_MANY}", _share(share, unit))
        could_be = share + (1 - covered) * _MOST_RISE * sum(peaks) / rate  # a short test whose rate rises to its end
        if share < covered - _MISSING - rounding and could_be < 1 - _MISSING:
            return ImportRefused(f"The logs have fewer {unit} than the test{_TOO_FEW}", _share(share, unit))
    return None


def _share(share: float, unit: str) -> str:
    return f"They have {100 * share:.0f} % of its {unit}."


def latency_problem(of: Mapping[Direction, Totals], stated: Sequence[Measurement], metric: str, unit_ns: float) -> str:
    """Why the latencies of the series cannot be those of the test, "" if they can."""
    for measurement in stated:
        mean_ns = measurement.metrics.get(metric)
        logged_totals = of.get(measurement.direction) if measurement.direction is not None else None
        if mean_ns is None or logged_totals is None or logged_totals.latency_mean_ns is None:
            continue
        logged = logged_totals.latency_mean_ns
        low, high = sorted((mean_ns, logged * unit_ns))
        if high > _OTHER_LATENCY * low + _LEAST_NS:
            return (
                f"Read, but not used: the mean latency of the logs is {_in_us(logged * unit_ns)} and that of the test "
                f"{_in_us(mean_ns)}. With log_max_value, logs have the largest latency of each interval."
            )
    return ""


def _in_us(ns: float) -> str:
    return f"{ns / 1000:,.4g} µs"


# What histogram logs and submission logs of fio add to the measurements of their test.

SUBMISSION_METRIC = "slat_mean_ns"
_LEAST, _MOST = 0.5, 1.01  # share of the test's I/Os; fio counts a few I/Os that end after the test
_UNUSED = "Read, but not used: "

Measurements = tuple[Measurement, ...]


def with_histograms(measured: Sequence[Measurement], histograms: Histograms) -> tuple[Measurements, str]:
    """The measurements with histograms where they have none, and a sentence about what was done."""
    if not histograms.of:
        return tuple(measured), f"{_UNUSED}the histogram logs have no I/Os."
    chosen = {measurement.direction: _of(measurement.direction, histograms) for measurement in measured}
    problems = [
        problem for measurement in measured if (problem := _problem(measurement, chosen[measurement.direction]))
    ]
    if problems:
        return tuple(measured), _UNUSED + problems[0]
    counts = ", ".join(_count(measurement, chosen[measurement.direction]) for measurement in measured)
    off = f" Latencies in it are up to {histograms.off_percent:.2g} % off." if histograms.off_percent > 1 else ""
    note = f"Latency histogram from logs, without the last interval, which fio does not log: {counts}.{off}"
    return tuple(
        replace(
            measurement,
            latency=replace(measurement.latency, histogram=chosen[measurement.direction]),
            notes=(*measurement.notes, note),
        )
        for measurement in measured
    ), note


def _of(direction: Direction | None, histograms: Histograms) -> Histogram:
    return merge(histograms.of.values()) if direction is None else histograms.of.get(direction, Histogram())


def _problem(measured: Measurement, histogram: Histogram) -> str:
    """Why a measurement cannot have this histogram, "" if it can."""
    latency = measured.latency
    if latency.histogram.counts:
        return "the test already has a latency histogram."
    if latency.kind != "clat":
        return "the test does not state completion latency, and histogram logs have no other."
    share = histogram.total / measured.ios if measured.ios else 1.0
    if not histogram.counts or share < _LEAST:
        return f"the histogram logs have only {100 * share:.0f} % of the test's I/Os."
    return "" if share <= _MOST else "the histogram logs have more I/Os than the test, so they are of another test."


def _count(measured: Measurement, histogram: Histogram) -> str:
    of = f" of {measured.ios:,}" if measured.ios else ""
    return f"{histogram.total:,}{of} I/Os{f' ({measured.direction})' if measured.direction else ''}"


def with_submission(measured: Sequence[Measurement], means: Mapping[Direction, float]) -> tuple[Measurements, str]:
    """The measurements with the mean submission latency in ns where they have none, and a sentence about what was
    done."""
    if not means:
        return tuple(measured), f"{_UNUSED}a mean submission latency needs the IOPS logs of the same test."
    if any(SUBMISSION_METRIC in measurement.metrics for measurement in measured):
        return tuple(measured), f"{_UNUSED}the test already has a mean submission latency."
    added = tuple(
        replace(measurement, metrics={**measurement.metrics, SUBMISSION_METRIC: means[measurement.direction]})
        if measurement.direction is not None and measurement.direction in means
        else measurement
        for measurement in measured
    )
    return added, f"Mean of the submission latency: the metric {SUBMISSION_METRIC}."


LOG_FORMAT = "fio-log"
TOOL = "fio"
MAX_OPEN = 8  # trials whose logs are still being read: files come in the order of their trials
MAX_OPEN_CHARACTERS = 38 * 1024 * 1024
MAX_CHARACTERS = 38 * 1024 * 1024  # of a trial: the rows of more logs need more than 300 MB of memory
_HASHED = 1024 * 1024
ADDING = (Kind.HISTOGRAM, Kind.SUBMISSION)  # what these logs have is not part of the series
_PREFIX = "{rw}-iodepth-{iodepth}-numjobs-{numjobs}"  # of fio-plot's bench-fio

_Series = dict[Direction, tuple[Point, ...]]


def update_hash(digest: "hashlib._Hash", text: str) -> None:
    """Add a text to a hash. Python needs four bytes for each character to encode some texts, so they are cut."""
    for begin in range(0, len(text), _HASHED):
        digest.update(text[begin : begin + _HASHED].encode("utf-8", "surrogatepass"))


class Trial:
    """The logs of one trial. Latencies are as in the logs: ns in fio 3.x, µs in 2.x."""

    def __init__(self, name: LogName) -> None:
        self.name = name
        self.paths: list[str] = []
        self._kinds: dict[str, Kind] = {}  # by path
        self.characters = 0
        self._hash = hashlib.sha256()
        self._logs: list[Log] = []
        self._series = b""
        self._totals: dict[Direction, Totals] = {}
        self._counts = HistogramSum()
        self._histograms: dict[Direction, bytes] = {}  # packed: many trials wait for being stored together
        self._off_percent = 0.0
        self._submission: dict[Direction, float] = {}  # means over time
        self._unused: dict[Kind, str] = {}  # notes about logs whose latencies are not in the series
        self._problems: dict[Kind, ImportRefused] = {}  # of logs that are not part of the series
        self._reason: ImportRefused | None = None

    def add(self, name: LogName, read: Read) -> None:
        if read.path in self._kinds:
            two = ImportRefused(
                "The import has two logs with the same path. Import their folders one by one.", f"It is {read.path}."
            )
            self._refuse(two)
        self.paths.append(read.path)
        self._kinds[read.path] = name.kind
        self._hash.update(f"{name.kind} {name.job} {len(read.text)} ".encode())
        update_hash(self._hash, read.text)
        if name.kind is Kind.HISTOGRAM:
            with self._problem_of(Kind.HISTOGRAM):
                self._counts.add(read.text)
            return
        self.characters += len(read.text)
        if self.characters > MAX_CHARACTERS:
            most = f"{MAX_CHARACTERS:,} characters"
            self._refuse(ImportRefused(f"The logs of this test have more than {most}. Use log_avg_msec."))
        if not self._reason:
            self._logs.append(Log(name.kind, name.job, read.text))

    def lose(self, name: LogName, path: str) -> None:
        """One of its logs is left out: the sums over its jobs would be too low."""
        lost, which = "Another log of the same test is left out, so ", f"It is {path}."
        if name.kind in ADDING:
            self._problems.setdefault(name.kind, ImportRefused(f"{lost}its {name.kind} logs are incomplete.", which))
        else:
            self._refuse(ImportRefused(f"{lost}the logs of this test are incomplete.", which))

    def _refuse(self, reason: ImportRefused) -> None:
        self._reason = self._reason or reason
        self._logs = []

    @property
    def digest(self) -> str:
        """Of all logs. Single logs may be equal, such as those of idle jobs."""
        return self._hash.hexdigest()

    @property
    def factors(self) -> Mapping[str, Value]:
        """As the names of the logs state them."""
        matched = labels.match(_PREFIX, self.name.prefix)
        empty = Measurement(tool=TOOL, direction=None, factors={})
        return labels.apply(matched, empty).measurement.factors if matched else {}

    def close(self) -> None:
        """Compute series, histograms and means, and forget the texts."""
        with self._problem_of(Kind.SUBMISSION):
            points = fio_log.submission(self._logs)
            self._submission = {
                way: mean for way, way_points in points.items() if (mean := _mean_latency(way_points)) is not None
            }
        with self._problem_of(Kind.HISTOGRAM):
            histograms = self._counts.histograms()
            self._histograms = {way: pack(histogram) for way, histogram in histograms.of.items()}
            self._off_percent = histograms.off_percent
        try:
            series_of_directions = fio_log.series(self._logs)
            self._series = _packed(series_of_directions)
            self._totals = {way: totals(points, _mean_latency(points)) for way, points in series_of_directions.items()}
        except ImportRefused as refusal:
            self._refuse(refusal)
        self._logs, self._counts = [], HistogramSum()

    @contextmanager
    def _problem_of(self, kind: Kind) -> Iterator[None]:
        """The first reason why the logs of this kind cannot be used."""
        try:
            yield
        except ImportRefused as refusal:
            self._problems.setdefault(kind, refusal)

    def check(self, measured: Measurements) -> None:
        """Leave out the series, or its latencies, if they are not those of a test with these measurements."""
        jobs = Counter(self._kinds.values())
        if reason := problem(self._totals, measured, jobs):
            self._series, self._totals = b"", {}
            self._problems |= {kind: reason for kind in Kind if kind is not Kind.HISTOGRAM}
        kind = Kind.LATENCY if Kind.LATENCY in jobs else Kind.COMPLETION
        unit = _unit_ns(measured[0].tool_version)
        if wrong := latency_problem(self._totals, measured, f"{kind}_mean_ns", unit):
            self._unused = dict.fromkeys((kind, Kind.COMPLETION), wrong)
            series = _unpacked(self._series)
            self._series = _packed({way: tuple(map(_without_latency, points)) for way, points in series.items()})

    def problem(self, path: str) -> ImportRefused | None:
        """Why this log alone cannot be used."""
        return self._problems.get(self._kinds[path])

    def series(self, version: str) -> bytes:
        """As Origin stores it, b"" without logs of bandwidth, IOPS or latency. `version` of fio, "" if unknown, which
        counts as 3.x. Raises ImportRefused."""
        if self._reason:
            raise self._reason
        if _unit_ns(version) == 1:
            return self._series
        series = _unpacked(self._series)
        return _packed({direction: tuple(map(_in_ns, points)) for direction, points in series.items()})

    @property
    def adds(self) -> bool:
        """Whether it has logs that `extended` adds to measurements."""
        return any(kind in ADDING and kind not in self._problems for kind in self._kinds.values())

    def extended(self, measured: Measurements, where: str) -> tuple[Measurements, dict[str, str]]:
        """The measurements of the trial's test with what histogram and submission logs add, and a note for each log.
        `where` is the file of the test. A trial that adds nothing needs no measurements."""
        notes = dict.fromkeys(Kind, f"Part of the time series of {where}.")
        kinds = set(self._kinds.values()) - self._problems.keys()
        if Kind.LATENCY in kinds:
            notes[Kind.COMPLETION] = f"Read, but not used: the time series of {where} has the total latency."
        if Kind.HISTOGRAM in kinds:
            measured, note = with_histograms(measured, self._unpacked_histograms())
            notes[Kind.HISTOGRAM] = f"Of the test in {where}. {note}"
        if Kind.SUBMISSION in kinds:
            unit = _unit_ns(measured[0].tool_version)
            measured, note = with_submission(measured, {way: mean * unit for way, mean in self._submission.items()})
            notes[Kind.SUBMISSION] = f"Of the test in {where}. {note}"
        notes |= self._unused
        return measured, {path: notes[kind] for path, kind in self._kinds.items()}

    def _unpacked_histograms(self) -> Histograms:
        return Histograms({way: unpack(packed) for way, packed in self._histograms.items()}, self._off_percent)

    def measurements(self) -> list[Measurement]:
        """The means of the series, as a test of its own; also of a histogram alone. Raises ImportRefused."""
        series, histograms = _unpacked(self.series("")), self._unpacked_histograms().of
        if not series and not histograms:
            raise ImportRefused(
                "These logs have no bandwidth, IOPS or latency and no histogram. They belong to no imported test."
            )
        return [
            self._measurement(direction, series.get(direction, ()), histograms.get(direction))
            for direction in Direction
            if direction in series or direction in histograms
        ]

    def _measurement(self, way: Direction, points: tuple[Point, ...], histogram: Histogram | None) -> Measurement:
        """With the mean of the histogram if there is one, so that mean and percentiles are of the same latency."""
        latency = Latency(mean_ns=_mean_latency(points))
        if histogram is not None:
            latency = Latency(kind="clat", mean_ns=histogram.mean_ns())
        note = (
            "Computed from logs only: means over time, as if all jobs ran at the same time. Latencies are read as ns, "
            "the unit of fio 3."
        )
        return Measurement(
            tool=TOOL, name=self.name.prefix[-200:], direction=way, factors=self.factors,
            iops=_mean(points, "iops"), bytes_per_s=_mean(points, "bytes_per_s"),
            runtime_ms=points[-1].offset_ms if points else None, latency=latency, notes=(note,),
        )  # fmt: skip


def _unit_ns(version: str) -> float:
    """Of the latencies in logs."""
    return 1000.0 if version.removeprefix("fio-").startswith("2") else 1.0


def has_all_rates(packed: bytes, measured: Measurements) -> bool:
    """Whether a stored series is known to have the rates of its test."""
    logged_totals = {way: totals(points, None) for way, points in _unpacked(packed).items()}
    stated = any(measurement.runtime_ms and (measurement.iops or measurement.bytes_per_s) for measurement in measured)
    logged = any(way_totals.ios is not None or way_totals.bytes is not None for way_totals in logged_totals.values())
    return stated and logged and problem(logged_totals, measured, {}) is None


def _packed(series: _Series) -> bytes:
    return zlib.compress(msgspec.json.encode(series)) if series else b""


def _unpacked(packed: bytes) -> _Series:
    return msgspec.json.decode(zlib.decompress(packed), type=_Series) if packed else {}


def _in_ns(point: Point) -> Point:
    """A point with a latency in µs."""
    return point if point.latency_mean_ns is None else replace(point, latency_mean_ns=point.latency_mean_ns * 1000)


def _without_latency(point: Point) -> Point:
    return replace(point, latency_mean_ns=None)


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
    """The trials whose logs are being read."""

    def __init__(self) -> None:
        self._open: dict[str, Trial] = {}

    def add(self, name: LogName, read: Read) -> Iterator[Trial]:
        """Add a log; returns trials that are complete."""
        self._opened(name).add(name, read)
        yield from self._closed()

    def lose(self, name: LogName, path: str) -> Iterator[Trial]:
        """A log that is left out; returns trials that are complete."""
        self._opened(name).lose(name, path)
        yield from self._closed()

    def _opened(self, name: LogName) -> Trial:
        trial = self._open.pop(name.trial, None) or Trial(name)
        self._open[name.trial] = trial  # the last one added to is the last one to be closed
        return trial

    def _closed(self) -> Iterator[Trial]:
        characters = sum(each.characters for each in self._open.values())
        while len(self._open) > MAX_OPEN or (characters > MAX_OPEN_CHARACTERS and len(self._open) > 1):
            oldest = self._open.pop(next(iter(self._open)))
            characters -= oldest.characters
            oldest.close()
            if oldest.paths:
                yield oldest

    def ended(self) -> Iterator[Trial]:
        """All other trials."""
        for trial in self._open.values():
            trial.close()
            if trial.paths:
                yield trial
