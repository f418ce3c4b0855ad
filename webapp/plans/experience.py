"""What earlier runs on a host tell about the time of trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from worker.contract.workload import Workload

OVERHEAD_S = 0.4  # from the end of one trial to the start of the next, and the engine's own start and end
PREFILL_BYTES_PER_S = 200e6  # sequential writes of a slow drive, so that the estimate is too long rather than too short


@dataclass(frozen=True)
class Span:
    """Observed values: the smallest, the median and the largest."""

    low: float
    typical: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Span":
        return Span(min(values), median(values), max(values))


@dataclass(frozen=True)
class Experience:
    """Durations and rates of earlier runs on one host, as means per run, so one outlier does not widen the range."""

    runs: int
    turnover_s: Span  # of a trial, without its run time
    prefill_bytes_per_s: Span | None = None  # None: no run wrote files
    # (ids of targets used at once, `Workload.rated`) -> bytes/s of each
    amounts: Mapping[tuple[tuple[str, ...], Workload], Span] = field(default_factory=dict)
    # (ids of targets, workload with seed 1) -> seconds from start to end of trials with a stop rule
    stops_s: Mapping[tuple[tuple[str, ...], Workload], Span] = field(default_factory=dict)
    # (ids of targets, `Workload.load_bytes`) -> seconds from the engine's start to the measured part, and after it
    loads_s: Mapping[tuple[tuple[str, ...], int], Span] = field(default_factory=dict)
    # (target id, point key) -> bytes/s of the nearest measured workload, if there is no rate in `amounts`
    nearest: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    sequential_writes: Mapping[str, Span] = field(default_factory=dict)  # target id -> bytes/s measured
    builds_s: Mapping[str, Span] = field(default_factory=dict)  # line of a layout -> seconds to build it


NOTHING_LEARNED = Experience(runs=0, turnover_s=Span.of([OVERHEAD_S]))
SLOW_PREFILL = Span.of([PREFILL_BYTES_PER_S])
