"""A small line chart with one number for each run of a schedule."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from webapp.core import formatting
from webapp.results.metrics import METRICS
from webapp.results.selectors import run_means
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence, Schedule

MAX_RUNS = 100
SMALL_BLOCK_BYTES = 128 * 1024  # below it IOPS are shown; from it on, bytes/s
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
    measured: int  # runs with a value
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
    """Of the latest MAX_RUNS ended runs of the schedule's plan version; None without values. Two queries.

    A run's value is the geometric mean over its trials, each the sum of its directions: of IOPS where every block is
    smaller than 128 KiB, else of bytes/s. A run in which a trial failed, was cancelled or is marked as invalid has no
    value: a mean over other points cannot be compared with the others.
    """
    newest = Occurrence.objects.filter(schedule=schedule, run__ended_at__isnull=False, run__version=schedule.version_id)
    newest = newest.select_related("run", "host").order_by("-due_at", "position")[:MAX_RUNS]
    occurrences = sorted(newest, key=lambda occurrence: (occurrence.due_at, occurrence.position))
    means = run_means([occurrence.run_id for occurrence in occurrences if occurrence.run_id])
    if not means:
        return None
    largest = max((each.max_block_bytes for each in means.values() if each.max_block_bytes), default=None)
    small = largest is not None and largest < SMALL_BLOCK_BYTES
    show = formatting.iops if small else formatting.bytes_per_s
    by_label: dict[str, list[Value]] = defaultdict(list)
    for occurrence in occurrences:
        assert occurrence.run is not None
        known = means.get(occurrence.run.pk)
        whole = known is not None and known.trials == occurrence.run.trial_count
        number = (known.iops if small else known.bytes_per_s) if known and whole else None
        label = occurrence.run.label or (occurrence.host.slug if occurrence.host else "")
        by_label[label].append(Value(occurrence.due_at, occurrence.run, number, show(number)))
    lines = [line for label, values in by_label.items() if (line := _line(label, values))]
    return Trend(METRICS["iops" if small else "bytes_per_s"].label, schedule.version.number, lines) if lines else None


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
        measured=len(measured),
        pieces=[" ".join(f"{x},{y}" for x, y in piece) for piece in pieces if len(piece) > 1],
        dots=[piece[0] for piece in pieces if len(piece) == 1],
    )


def _placed(count: int, low: float, high: float) -> Callable[[int, float], tuple[float, float]]:
    """The position of a value in the drawing: runs side by side, the lowest value at the bottom."""
    step = (WIDTH - 2 * MARGIN) / max(1, count - 1)
    scale = (HEIGHT - 2 * MARGIN) / (high - low) if high > low else 0

    def place(index: int, value: float) -> tuple[float, float]:
        y = HEIGHT - MARGIN - (value - low) * scale if scale else HEIGHT / 2
        return round(MARGIN + index * step, 1), round(y, 1)

    return place


def _change(numbers: Sequence[float]) -> str:
    """From the first to the last: ×1.05; "" for a single run."""
    return formatting.ratio(numbers[-1] / numbers[0]) if len(numbers) > 1 else ""
