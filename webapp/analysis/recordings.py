"""The recorded seconds and counters of a run's trials, as far as findings need them.

One query reads a row for each result; it has the verdict on the series and the counters over the whole trial. They say
at which points something can be found: a stall, a step or drift, a device that was idle, or buffered writes. Only the
samples of these points are read, a few trials at a time, and at most `MOST_VALUES` values: stalls first, then the
largest changes, then the highest IOPS, because a processor is the limit there first.

Trials of one stream only: streams of several targets or workloads have seconds and devices of their own.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import F, Func, IntegerField

from webapp.analysis.dimensions import ABSENT_LEVEL, matched_level
from webapp.analysis.findings.bottleneck import MOST_UTILISATION
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, Seconds, Sensor
from webapp.analysis.timeline import IOPS_OF_SECONDS, WHOLE, seconds_of
from webapp.plans.factors import STREAM
from webapp.plans.points import number_of, stream_count, varying
from webapp.results.models import KernelLine, Result, Sample, StreamRun
from webapp.results.reading.content import POINTS, Point
from webapp.runs.models import Run
from worker.contract.steadiness import Verdict

MOST_VALUES = 200_000  # rates and sensor values of all samples that are read
AT_ONCE = 20  # trials in memory with the rows of their samples
_CHANGING = frozenset({Verdict.STEPPED, Verdict.DRIFTING})


@dataclass(frozen=True)
class _Trial:
    """A trial with its results, before its samples are read."""

    number: int
    repeat: int
    attempt: UUID
    results: tuple[int, ...]  # ids, one for each direction
    iops: float  # over all directions
    seconds: float
    sensors: int  # their number
    utilisation: float | None  # percent, of the device over the whole trial
    verdict: str
    stalled_s: float
    change: float  # of a step or a drift, as a share

    @property
    def values(self) -> float:
        """The number of values in its samples."""
        return self.seconds * (self.sensors + len(self.results))


@dataclass(frozen=True)
class _Group:
    """The trials at one point of one target."""

    target: str
    point: Point
    trials: tuple[_Trial, ...]

    @property
    def is_buffered(self) -> bool:
        return self.point.get("direct") is False and "write" in str(self.point.get("pattern", ""))

    @property
    def priority(self) -> tuple[float, float, float]:
        """Of what may be found, the most promising first."""
        return (
            -max(trial.stalled_s for trial in self.trials),
            -max(abs(trial.change) if trial.verdict in _CHANGING else 0.0 for trial in self.trials),
            -max(trial.iops for trial in self.trials),
        )

    @property
    def is_promising(self) -> bool:
        """Whether the verdicts and counters leave a finding possible."""
        if any(trial.stalled_s or trial.verdict in _CHANGING for trial in self.trials) or self.is_buffered:
            return True
        return all(trial.utilisation is not None and trial.utilisation <= MOST_UTILISATION for trial in self.trials)


def recorded_points(run: Run) -> dict[str, list[RecordedPoint]]:
    """By target. Two queries, and four for every `AT_ONCE` trials whose samples are read."""
    groups = [group for group in _groups(run) if stream_count(group.point) == 1 and STREAM not in group.point]
    names = varying([group.point for group in groups])
    recorded: dict[str, list[RecordedPoint]] = defaultdict(list)
    chosen = list(_within_limit(sorted((group for group in groups if group.is_promising), key=lambda g: g.priority)))
    trials = dict(_recorded([trial for group in chosen for trial in group.trials]))
    for group in chosen:
        known = tuple(trials[trial.number] for trial in group.trials if trial.number in trials)
        if len(known) == len(group.trials):
            block = group.point.get("block_size")
            recorded[group.target].append(
                RecordedPoint(
                    name=_name(group.point, names),
                    trials=known,
                    depth=_depth(group.point),
                    buffered=group.is_buffered,
                    block_bytes=block if isinstance(block, int) else None,
                )
            )
    return dict(recorded)


def _depth(point: Point) -> int | None:
    """I/Os in flight over all jobs; None if the point does not say it."""
    depth, jobs = point.get("iodepth"), point.get("numjobs")
    return depth * jobs if isinstance(depth, int) and isinstance(jobs, int) else None


def _name(point: Point, names: tuple[str, ...]) -> str:
    """The levels that tell it from the other points: `randwrite · 4 KiB · Queue depth 32`."""
    return matched_level(names, tuple(point.get(name, ABSENT_LEVEL) for name in names)).text if names else ""


def _groups(run: Run) -> list[_Group]:
    columns = (
        "id", "point_key", "host__slug", "target__slug", "trial__index", "repeat", "stream_run__attempt_id", "iops",
        "runtime_ms", "steadiness", "steadiness_numbers", "stream_run__device", "sensors",
    )  # fmt: skip
    length = Func(F("stream_run__sensors"), function="jsonb_array_length", output_field=IntegerField())
    rows = list(
        Result.objects.filter(run=run, invalid=False, iops__isnull=False)
        .order_by("trial__index", "direction")
        .annotate(sensors=length)
        .values_list(*columns)
    )
    points = POINTS.get({key: id_ for id_, key, *_ in rows})
    by_trial: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        by_trial[row[4]].append(row)
    trials: dict[tuple[str, str], list[_Trial]] = defaultdict(list)
    for directions in by_trial.values():
        _, key, host, target, *_ = directions[0]
        trials[f"{host}/{target}", key].append(_trial(directions))
    return [_Group(target, points[key], tuple(each)) for (target, key), each in trials.items()]


def _trial(directions: Sequence[Any]) -> _Trial:
    _, _, _, _, index, repeat, attempt, _, runtime_ms, verdict, numbers, device, sensors = directions[0]
    return _Trial(
        number=number_of(index),
        repeat=repeat,
        attempt=attempt,
        results=tuple(row[0] for row in directions),
        iops=sum(row[7] for row in directions),
        seconds=(runtime_ms or 0) / 1000,
        sensors=sensors or 0,
        utilisation=(device or {}).get("utilisation_percent"),
        verdict=verdict,
        stalled_s=numbers.get("stalled_s", 0),
        change=numbers.get("step" if verdict == Verdict.STEPPED else "drift", 0.0),
    )


def _within_limit(groups: Sequence[_Group]) -> Iterator[_Group]:
    """The first groups whose samples are no more values than are read. A group is read as a whole or not at all."""
    left = float(MOST_VALUES)
    for group in groups:
        values = sum(trial.values for trial in group.trials)
        if values <= left:
            left -= values
            yield group


def _recorded(trials: Sequence[_Trial]) -> Iterator[tuple[int, RecordedTrial]]:
    """By number of the trial; without trials that have no samples."""
    for start in range(0, len(trials), AT_ONCE):
        some = trials[start : start + AT_ONCE]
        attempts = [trial.attempt for trial in some]
        rates = seconds_of({id_: trial.number for trial in some for id_ in trial.results}, IOPS_OF_SECONDS, WHOLE)
        streams = StreamRun.objects.filter(attempt__in=attempts, stream=0).values_list("attempt_id", "sensors")
        sensors = {attempt: [(kind, name) for kind, name in listed] for attempt, listed in streams}
        counters = _counters(attempts)
        errors = _errors(attempts)
        for trial in some:
            if trial.number in rates:
                rows = counters.get(trial.attempt, [])
                yield trial.number, _with_counters(trial, rates[trial.number], rows, sensors, errors)


_Row = tuple[int, datetime, float | None, float | None, Sequence[float | None] | None]


def _counters(attempts: Sequence[UUID]) -> dict[UUID, list[_Row]]:
    """The end of each sample, in ms and as a time, utilisation, queue depth and sensors. One direction of a sample has
    the sensors."""
    rows: dict[UUID, list[_Row]] = defaultdict(list)
    columns = ("attempt_id", "offset_ms", "at", "utilisation_percent", "queue_depth", "telemetry")
    samples = Sample.objects.filter(attempt_id__in=attempts, stream=0).order_by("attempt_id", "offset_ms")
    for attempt, *row in samples.values_list(*columns):
        rows[attempt].append(tuple(row))
    return rows


def _errors(attempts: Sequence[UUID]) -> dict[UUID, list[datetime]]:
    times: dict[UUID, list[datetime]] = defaultdict(list)
    lines = KernelLine.objects.filter(attempt__in=attempts, elsewhere=False).values_list("attempt_id", "at")
    for attempt, at in lines:
        times[attempt].append(at)
    return times


def _with_counters(
    trial: _Trial,
    rates: Seconds,
    rows: Sequence[_Row],
    sensors: Mapping[UUID, Sequence[Sensor]],
    errors: Mapping[UUID, Sequence[datetime]],
) -> RecordedTrial:
    names = sensors.get(trial.attempt, ())
    table = np.full((2 + len(names), len(rates)), np.nan)
    for offset_ms, _, utilisation, depth, telemetry in rows:
        second = round(offset_ms / 1000) - 1
        if 0 <= second < len(rates):
            if utilisation is not None and depth is not None:
                table[:2, second] = utilisation, depth
            if telemetry and len(telemetry) == len(names):
                table[2:, second] = telemetry
    began = rows[0][1] - timedelta(milliseconds=rows[0][0]) if rows else None
    seconds = [int((at - began).total_seconds()) for at in errors.get(trial.attempt, ())] if began else []
    return RecordedTrial(
        number=trial.number,
        iops=rates,
        utilisation=table[0],
        queue_depth=table[1],
        sensors=dict(zip(names, table[2:], strict=True)),
        errors=tuple(seconds),
    )
