"""What a run, or one trial of it, wrote to each drive, by whose count, and what that cost the drive.

Four counts of the same writes, each from the first reading of the drive to the last one:

    the engine's    what its jobs measured: without ramps, files written first, and what file systems add
    the kernel's    everything that this host wrote to the drive, whoever did
    the drive's     everything that any host wrote to it (SMART)
    to its media    what the drive wrote to its flash: its own moving of data included

Write amplification is the last divided by the one before (as JEDEC JESD218 defines it). A counter moves in steps: a
reading is less than a step away from the truth, always on the same side, so a difference of two is within one step of
it. From these bounds follow the least and the greatest amplification that fit; where they are further from it than
RESOLVED, no number is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from uuid import UUID

from django.db.models import QuerySet, Sum

from webapp.hosts.models import Target
from webapp.plans.engines import engine_of
from webapp.results.models import DriveReading, Result
from webapp.runs.models import Run, Trial
from webapp.runs.selectors import read_further
from worker.contract.items import ReadingMoment

RESOLVED = 0.10  # of the amplification, on either side
SILENT = "not reported"
ONCE = "only one reading so far"
TOO_COARSE = "below the counter's resolution"
BACKWARDS = "the counter went back"


@dataclass(frozen=True)
class Counted:
    """How far a counter moved. Without a `count`, `why` says in words what keeps it from being known."""

    count: int | None = None
    step: int = 0  # what one count stands for: the truth is within this of it
    why: str = ""

    @property
    def least(self) -> int:
        return max(0, (self.count or 0) - self.step)

    @property
    def greatest(self) -> int:
        return (self.count or 0) + self.step


@dataclass(frozen=True)
class Amplification:
    """Media divided by host bytes, with the least and the greatest that fit the counters."""

    ratio: float | None = None
    low: float = 0.0
    high: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class DriveWear:
    """Bytes written to one drive. `engine_bytes` is the sum for all `together` drives written to at once."""

    host: str
    device: str
    drive: str  # stable id
    serial: str
    model: str
    targets: tuple[str, ...]
    engines: tuple[str, ...]  # labels of the engines of its trials
    engine_bytes: int
    together: int
    kernel_bytes: int | None  # None: not counted
    kernel_at_least: bool  # part of it was not seen: the host was restarted
    host_bytes: Counted
    media_bytes: Counted
    amplification: Amplification
    percent_before: int | None
    percent_after: int | None
    problem: str  # why the drive could not be asked the last time

    @property
    def percent_used(self) -> Counted:
        """Of its rated endurance, as the drive itself reckons: whole percents."""
        if self.percent_before is None or self.percent_after is None:
            return Counted(why=SILENT)
        return _told(self.percent_after - self.percent_before, 1)


def wear_of(run: Run) -> list[DriveWear]:
    """Every drive that the run wrote to, by host and device. Two queries, and one more with targets at once."""
    return _wears(_readings().filter(attempt__run=run), Result.objects.filter(run=run))


def wear_of_trial(trial: Trial) -> list[DriveWear]:
    """Every drive that the last attempt at it wrote to. Three queries.

    A drive that nobody had written to since the run's attempt before was not read again: its first reading is that
    attempt's last one.
    """
    readings = _readings().filter(attempt__trial=trial)
    trial_readings = list(readings.filter(attempt__in=readings.order_by("-attempt__number").values("attempt")[:1]))
    if not trial_readings:
        return []
    attempt, read_before = (
        trial_readings[0].attempt,
        {reading.drive for reading in trial_readings if reading.moment == ReadingMoment.BEFORE},
    )
    earlier = _readings().filter(attempt__run=trial.run_id, attempt__host=attempt.host_id, pk__lt=trial_readings[0].pk)
    earlier = earlier.filter(drive__in={reading.drive for reading in trial_readings} - read_before)
    starts = list(earlier.order_by("drive", "-pk").distinct("drive"))
    for start in starts:
        start.attempt, start.moment = attempt, ReadingMoment.BEFORE
    return _wears([*starts, *trial_readings], Result.objects.filter(stream_run__attempt=attempt))


def _readings() -> QuerySet[DriveReading]:
    return DriveReading.objects.select_related("attempt__host", "attempt__trial__target__host")


def _wears(readings: Iterable[DriveReading], results: QuerySet[Result]) -> list[DriveWear]:
    groups: dict[tuple[UUID, str], list[DriveReading]] = {}
    for reading in readings:
        groups.setdefault((reading.attempt.host_id, reading.drive), []).append(reading)
    read_further(reading.attempt.trial for group in groups.values() for reading in group if reading.attempt.trial)
    written = _written_by_engines(results) if groups else {}
    drives = _drives_of_places(groups.values())
    wears = [_wear(group, written, drives) for group in groups.values()]
    return sorted(wears, key=lambda wear: (wear.host, wear.device))


Place = tuple[UUID, UUID | None]  # a trial, and the target of a named stream


def _written_by_engines(results: QuerySet[Result]) -> Mapping[Place, int]:
    """Of named streams, which have results of their own, by target too."""
    written: dict[Place, int] = {}
    rows = results.filter(direction="write").order_by().values_list("trial", "target").annotate(Sum("bytes"))
    for trial, target, total in rows:
        for place in {(trial, target), (trial, None)}:  # one place if the result has no target
            written[place] = written.get(place, 0) + (total or 0)
    return written


def _drives_of_places(groups: Iterable[Sequence[DriveReading]]) -> Mapping[Place, int]:
    """How many drives each trial, or its streams on one target, wrote to."""
    counts: dict[Place, int] = {}
    for readings in groups:
        for place in _places(readings):
            counts[place] = counts.get(place, 0) + 1
    return counts


def _places(readings: Sequence[DriveReading]) -> set[Place]:
    """What wrote to the drive."""
    places: set[Place] = set()
    for each in readings:
        trial = each.attempt.trial
        if each.moment == "after" and trial is not None:
            on_drive: list[UUID | None] = [target.pk for target in _at(each)] if trial.stream_names else []
            places |= {(trial.pk, target) for target in on_drive or [None]}
    return places


def _wear(readings: Sequence[DriveReading], written: Mapping[Place, int], drives: Mapping[Place, int]) -> DriveWear:
    first, last, places = readings[0], readings[-1], _places(readings)
    by_kernel, whole = _by_kernel(readings)
    host_bytes = _moved(readings, "host_written_bytes", "host_unit_bytes")
    media_bytes = _moved(readings, "media_written_bytes", "media_unit_bytes")
    percents = [each.percent_used for each in readings if each.percent_used is not None]
    return DriveWear(
        host=first.attempt.host.slug,
        device=last.device,
        drive=first.drive,
        serial=first.serial,
        model=first.model,
        targets=tuple(sorted({str(target) for each in readings for target in _at(each)})),
        engines=tuple(sorted({engine_of(each.attempt.trial.point).LABEL for each in readings if each.attempt.trial})),
        engine_bytes=sum(written.get(place, 0) for place in places),
        together=max((drives[place] for place in places), default=1),
        kernel_bytes=by_kernel,
        kernel_at_least=not whole,
        host_bytes=_shown(host_bytes),
        media_bytes=_shown(media_bytes),
        amplification=_amplification(readings, host_bytes, media_bytes),
        percent_before=percents[0] if percents else None,
        percent_after=percents[-1] if percents else None,
        problem=last.problem,
    )


def _at(reading: DriveReading) -> list[Target]:
    """Targets of its trial that lie on the drive; of a trial of one, that one, whatever it lies on."""
    trial = reading.attempt.trial
    if trial is None:
        return []
    names = {reading.drive, f"{reading.attempt.host_id}:{reading.drive}"}
    targets = trial.all_targets
    return targets if len(targets) == 1 else [each for each in targets if names & {*each.lock_keys}]


def _by_kernel(readings: Sequence[DriveReading]) -> tuple[int | None, bool]:
    """The sum over all boots, and whether nothing was missed."""
    total, whole, known = 0, True, False
    for before, after in pairwise(readings):
        if before.kernel_written_bytes is None or after.kernel_written_bytes is None:
            whole = False
        elif before.boot_id != after.boot_id or after.kernel_written_bytes < before.kernel_written_bytes:
            whole, known, total = False, True, total + after.kernel_written_bytes
        else:
            known, total = True, total + after.kernel_written_bytes - before.kernel_written_bytes
    return (total, whole) if known else (None, whole)


def _moved(readings: Sequence[DriveReading], count: str, unit: str) -> Counted:
    """Between the first and the last reading that have this count."""
    readings_with_count = [
        (getattr(reading, count), getattr(reading, unit)) for reading in readings if getattr(reading, count) is not None
    ]
    if len(readings_with_count) < 2 or not all(unit for _, unit in readings_with_count):
        return Counted(why=ONCE if readings_with_count else SILENT)
    if len({unit for _, unit in readings_with_count}) > 1:
        return Counted(why="it was counted in different units")
    counts = [count for count, _ in readings_with_count]
    if any(after < before for before, after in pairwise(counts)):
        return Counted(why=BACKWARDS)
    return Counted(counts[-1] - counts[0], readings_with_count[0][1])


def _told(moved: int, step: int) -> Counted:
    return Counted(why=BACKWARDS) if moved < 0 else _shown(Counted(moved, step))


def _shown(counted: Counted) -> Counted:
    """Without a count where it may as well have been nothing."""
    if counted.count is not None and counted.least == 0:
        return Counted(step=counted.step, why=TOO_COARSE)
    return counted


def _amplification(readings: Sequence[DriveReading], host: Counted, media: Counted) -> Amplification:
    """By bytes, else by pages."""
    if host.count is not None and media.count is not None:
        return _ratio(media, host)
    pages = [(e.media_pages, e.host_pages) for e in readings if e.media_pages is not None and e.host_pages is not None]
    if len(pages) < 2:
        return Amplification(why=media.why or host.why)
    (media_first, host_first), (media_last, host_last) = pages[0], pages[-1]
    if media_last < media_first or host_last < host_first:
        return Amplification(why=BACKWARDS)
    return _ratio(Counted(media_last - media_first, 2), Counted(host_last - host_first, 1))  # media: of two counters


def _ratio(media: Counted, host: Counted) -> Amplification:
    if not media.count or not host.count:
        return Amplification(why=TOO_COARSE)
    ratio = media.count / host.count
    low, high = media.least / host.greatest, media.greatest / host.least if host.least else inf
    if max(ratio - low, high - ratio) > RESOLVED * ratio:
        return Amplification(why=TOO_COARSE)
    return Amplification(ratio, low, high)
