"""One number for each run of a schedule, over time, as a small line."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import geometric_mean
from typing import Any, Literal, TypedDict
from uuid import UUID

from django.db.models import BigIntegerField, Max, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from webapp.core import formatting
from webapp.results.models import Result
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence, Schedule

MOST_RUNS = 100
SMALL_BLOCK_BYTES = 128 * 1024  # below it, operations count; from it on, bytes
WIDTH, HEIGHT, MARGIN = 240, 40, 4  # of the drawing, px


@dataclass(frozen=True)
class Value:
    due_at: datetime
    run: Run
    number: float | None  # None: the run lacks results
    text: str


@dataclass(frozen=True)
class Line:
    """One host. `pieces` are the points of polylines, broken where a run has no result; `dots` are single points."""

    label: str
    values: Sequence[Value]
    first: Value
    last: Value
    change: str
    pieces: Sequence[str]
    dots: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Trend:
    metric: str
    version: int  # number of the plan version
    lines: Sequence[Line]
    width: int = WIDTH
    height: int = HEIGHT


def trend(schedule: Schedule) -> Trend | None:
    """Of the latest MOST_RUNS ended runs of the schedule's plan version; None without any value. Two queries.

    A run's value is the geometric mean over its trials, each the sum of its directions: of IOPS where every block is
    smaller than 128 KiB, else of bytes/s. A run in which a trial failed, was cancelled or is marked as invalid has no
    value: a mean over other points cannot be compared with the others.
    """
    found = Occurrence.objects.filter(schedule=schedule, run__ended_at__isnull=False, run__version=schedule.version_id)
    found = found.select_related("run", "host").order_by("-due_at", "position")[:MOST_RUNS]
    occurrences = sorted(found, key=lambda one: (one.due_at, one.position))
    means = _means([one.run_id for one in occurrences])
    if not means:
        return None
    largest = max((row["largest"] for row in means.values() if row["largest"] is not None), default=None)
    small = largest is not None and largest < SMALL_BLOCK_BYTES
    key: Literal["iops", "rate"] = "iops" if small else "rate"
    show = formatting.iops if small else formatting.bytes_per_s
    by_label: dict[str, list[Value]] = defaultdict(list)
    for one in occurrences:
        assert one.run is not None
        known = means.get(one.run_id)
        number = known[key] if known and known["trials"] == one.run.trial_count else None
        label = one.run.label or (one.host.slug if one.host else "")
        by_label[label].append(Value(one.due_at, one.run, number, show(number)))
    lines = [line for label, values in by_label.items() if (line := _line(label, values))]
    return Trend("IOPS" if small else "Throughput", schedule.version.number, lines) if lines else None


class Means(TypedDict):
    run: UUID
    trials: int
    iops: float
    rate: float  # bytes/s
    largest: int | None  # block, bytes


def _means(runs: Sequence[UUID | None]) -> dict[UUID | None, Means]:
    """By run."""
    results = Result.objects.filter(run__in=runs, invalid=False, iops__gt=0, bytes_per_s__gt=0).order_by()
    block = Cast(KeyTextTransform("block_size", "point"), BigIntegerField())
    trials = results.values("run", "trial").annotate(iops=Sum("iops"), rate=Sum("bytes_per_s"), largest=Max(block))
    by_run: dict[UUID, list[Mapping[str, Any]]] = defaultdict(list)
    for row in trials:
        by_run[row["run"]].append(row)
    return {run: _mean(run, rows) for run, rows in by_run.items()}


def _mean(run: UUID, rows: Sequence[Mapping[str, Any]]) -> Means:
    blocks = [row["largest"] for row in rows if row["largest"] is not None]
    return Means(
        run=run,
        trials=len(rows),
        iops=geometric_mean(row["iops"] for row in rows),
        rate=geometric_mean(row["rate"] for row in rows),
        largest=max(blocks, default=None),
    )


def _line(label: str, values: Sequence[Value]) -> Line | None:
    numbers = [value.number for value in values if value.number is not None]
    measured = [value for value in values if value.number is not None]
    if not measured:
        return None
    place = _placed(len(values), min(numbers), max(numbers))
    pieces: list[list[tuple[float, float]]] = [[]]
    for step, value in enumerate(values):
        if value.number is None:
            pieces.append([])
        else:
            pieces[-1].append(place(step, value.number))
    return Line(
        label=label,
        values=values,
        first=measured[0],
        last=measured[-1],
        change=_change(numbers),
        pieces=[" ".join(f"{x},{y}" for x, y in piece) for piece in pieces if len(piece) > 1],
        dots=[piece[0] for piece in pieces if len(piece) == 1],
    )


def _placed(count: int, low: float, high: float) -> Callable[[int, float], tuple[float, float]]:
    """Where a value stands in the drawing: runs side by side, the lowest value at the bottom."""
    step = (WIDTH - 2 * MARGIN) / max(1, count - 1)
    scale = (HEIGHT - 2 * MARGIN) / (high - low) if high > low else 0

    def place(index: int, value: float) -> tuple[float, float]:
        y = HEIGHT - MARGIN - (value - low) * scale if scale else HEIGHT / 2
        return round(MARGIN + index * step, 1), round(y, 1)

    return place


def _change(numbers: Sequence[float]) -> str:
    """From the first to the last: ×1.05; "" for a single run."""
    return formatting.ratio(numbers[-1] / numbers[0]) if len(numbers) > 1 else ""
