"""One IOPS and one bandwidth figure for each run: the trend of a schedule."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import geometric_mean
from uuid import UUID

from django.db.models import BigIntegerField, Max, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from webapp.results.models import Result


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


def _means(trials: Iterable[TrialSums]) -> RunMeans:
    iops, bytes_per_s, blocks = zip(*trials, strict=True)
    largest = max((block for block in blocks if block is not None), default=None)
    return RunMeans(len(iops), geometric_mean(iops), geometric_mean(bytes_per_s), largest)
