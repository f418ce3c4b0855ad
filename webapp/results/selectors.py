"""The newest run and import, and reads of one trial: its attempts, samples and configuration. Results are read in
`reading`."""

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any
from uuid import UUID

import msgspec
from django.db.models import BigIntegerField, Count, Exists, F, Max, OuterRef, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.db.models.lookups import IsNull

from webapp.core.errors import NotFound
from webapp.core.formatting import significant
from webapp.core.models import User
from webapp.results.models import ColumnChoice, Import, KernelLine, Origin, Result, Sample, StreamRun, known
from webapp.runs.models import Attempt, Run, Trial
from worker.contract.items import Direction
from worker.contract.workload import Settled, Stopped
from worker.recipes.base import write_stop_rule

# The time series of imported tests.

Series = dict[str, list[dict[str, float | None]]]


def series_of(origin: Origin) -> Series:
    """By direction; lists of imports.measurement.Point. Empty without a series."""
    return json.loads(zlib.decompress(bytes(origin.series))) if origin.series else {}


# How a stop rule ended a stream, in words.


def stop_words(stored: Mapping[str, Any]) -> str:
    """`StreamRun.stopped` in sentences; says which seconds the results cover."""
    stopped = msgspec.convert(stored, Stopped)
    if not stopped.reached:
        return (
            f"The stop rule {write_stop_rule(stopped.rule)} was not reached within the maximum time. "
            f"The results cover all of the {_seconds(stopped.to_ms)} s."
        )
    from_s, to_s = _seconds(stopped.from_ms), _seconds(stopped.to_ms)
    how = (
        f"Settled after {from_s} s"
        if isinstance(stopped.rule, Settled)
        else f"Reached after {_seconds(stopped.at_ms)} s"
    )
    by = f"by the stop rule {write_stop_rule(stopped.rule)}"
    return f"{how}, {by}. The results are from {from_s} s to {to_s} s.{_interval(stopped)}"


def _interval(stopped: Stopped) -> str:
    if stopped.interval_percent is None:
        return ""
    return f" The 95 % interval of the mean is ±{significant(stopped.interval_percent)} %."


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f}"


# One IOPS and one bandwidth figure for each run: the trend of a schedule.


@dataclass(frozen=True)
class RunMeans:
    """Geometric means over the trials of a run; the value of a trial is the sum over its directions."""

    trials: int  # with valid results
    iops: float
    bytes_per_s: float
    max_block_bytes: int | None  # None if no point has a block size


TrialSums = tuple[float, float, int | None]


def run_means(runs: Collection[UUID]) -> dict[UUID, RunMeans]:
    """By run id; runs without valid results are missing. One query: PostgreSQL adds up the directions."""
    valid = Result.objects.filter(run__in=runs, invalid=False, iops__gt=0, bytes_per_s__gt=0).order_by()
    block = Cast(KeyTextTransform("block_size", "point"), BigIntegerField())
    sums = valid.values_list("run", "trial").annotate(Sum("iops"), Sum("bytes_per_s"), block=Max(block))
    by_run: dict[UUID, list[TrialSums]] = defaultdict(list)
    for run, _, iops, bytes_per_s, block_bytes in sums:
        by_run[run].append((iops, bytes_per_s, block_bytes))
    return {run: _means(trials) for run, trials in by_run.items()}


def written_bytes(runs: Collection[UUID]) -> dict[UUID, int]:
    """Bytes that the trials of each run wrote, by run, without prefill and steps; a run without writes is missing."""
    written = Result.objects.filter(run__in=runs, direction=Direction.WRITE).order_by().values_list("run")
    return {known(run): total or 0 for run, total in written.annotate(Sum("bytes"))}


def _means(trials: Iterable[TrialSums]) -> RunMeans:
    iops, bytes_per_s, blocks = zip(*trials, strict=True)
    largest = max((block for block in blocks if block is not None), default=None)
    return RunMeans(len(iops), geometric_mean(iops), geometric_mean(bytes_per_s), largest)


# A person's display preferences. They affect nobody else, so changes are not in the audit log.


def remembered_columns(user: User) -> tuple[str, ...]:
    """Keys of columns; empty if the person never chose."""
    columns = ColumnChoice.objects.filter(user=user).values_list("columns", flat=True).first()
    return tuple(str(column) for column in columns or ())


def remember_columns(*, user: User, columns: Sequence[str]) -> None:
    """An empty choice restores the default ones."""
    if columns:
        ColumnChoice.objects.update_or_create(user=user, defaults={"columns": list(columns)})
    else:
        ColumnChoice.objects.filter(user=user).delete()


def newest_run() -> int | None:
    """The number of the newest run with a valid result."""
    valid = Result.objects.filter(run=OuterRef("pk"), invalid=False)
    return Run.objects.filter(Exists(valid)).order_by("-number").values_list("number", flat=True).first()


def newest_import() -> int | None:
    """The number of the newest import with a valid result; a reference only if no other import has one."""
    valid = Result.objects.filter(origin__imported=OuterRef("pk"), invalid=False)
    imports = Import.objects.filter(Exists(valid)).order_by(IsNull(F("slug"), False), "-number")
    return imports.values_list("number", flat=True).first()


def trial_with(trial_id: str) -> Trial:
    """A trial with its run, host and target. Raises Refusal trial_unknown."""
    trial = Trial.objects.select_related("run", "host", "target__host").filter(pk=trial_id).first()
    if trial is None:
        raise NotFound("trial_unknown", f"There is no trial {trial_id}.")
    return trial


def current_attempt(trial: Trial) -> Attempt | None:
    """The newest attempt of a trial."""
    return trial.attempts.order_by("-number").first()


def configuration_of(trial: Trial) -> dict[str, str]:
    """The observed facts of the newest attempt, from its first stream with a configuration."""
    streams = StreamRun.objects.filter(attempt=current_attempt(trial), configuration__isnull=False)
    facts: dict[str, str] | None = streams.order_by("stream").values_list("configuration__facts", flat=True).first()
    return facts or {}


def series(attempt: Attempt, *, after_ms: int = 0) -> QuerySet[Sample]:
    """The samples of an attempt that end after offset `after_ms`, in order, without histograms."""
    samples = Sample.objects.filter(attempt=attempt, offset_ms__gt=after_ms).defer("latency")
    return samples.order_by("offset_ms", "stream", "direction")


def sensors_of(attempt: Attempt) -> list[tuple[str, str]]:
    """Kind and name of the telemetry sensors, in the order of the values in samples."""
    sensors = StreamRun.objects.filter(attempt=attempt).exclude(sensors=[]).values_list("sensors", flat=True).first()
    return [(kind, name) for kind, name in sensors or []]


def kernel_lines_of(trials: Iterable[Trial] | QuerySet[Any, Any]) -> Mapping[UUID, int]:
    """Storage errors in the kernel log, counted by trial over all attempts; trials without errors are missing."""
    lines_of_trials = KernelLine.objects.filter(attempt__trial__in=trials, elsewhere=False).order_by()
    counted = lines_of_trials.values_list("attempt__trial").annotate(Count("sequence"))
    return {trial: lines for trial, lines in counted if trial is not None}
