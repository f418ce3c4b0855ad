"""Data that pages send to their scripts. `dev/payload_types.py` makes TypeScript types and run-time checks of it; the
examples in `frontend/tests/vectors/` test both sides.
"""

import msgspec


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all data that our scripts read. Every field is always sent, so no field has a default."""


class ChartCeiling(Payload, frozen=True, kw_only=True):
    """The limit of a target in bytes/s; `low` to `high` is the practical range of its limiting link."""

    text: str
    value: float
    low: float | None
    high: float | None


class ChartSpan(Payload, frozen=True, kw_only=True):
    """Seconds that are the evidence of a finding, on the time axis of the chart."""

    from_s: float
    to_s: float


class Marks(Payload, frozen=True, kw_only=True):
    """The number of changes that marked results as invalid or valid."""

    count: int


class LiveSample(Payload, frozen=True, kw_only=True):
    """One direction of one interval of a stream."""

    host: str
    trial: int  # number in the run
    attempt: int
    stream: int
    stream_name: str  # of a stream with its own workload, else ""
    offset_ms: int  # end of the interval, since the measured part of the stream began
    length_ms: int
    estimated: bool  # its I/Os are a share of those of a longer time without a report
    at_s: float  # end of the interval, since the run began
    direction: str
    iops: float | None  # of transactions: their number per second
    bytes_per_s: float | None
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    queue_depth: float | None
    utilisation_percent: float | None
    telemetry: tuple[float | None, ...]  # in the order of the attempt's sensors; set in one direction only


class LiveSensor(Payload, frozen=True, kw_only=True):
    """One telemetry line: its panel, and its name in the panel."""

    panel: str  # a SensorKind, or cpu for values computed from all cores
    name: str


class LiveSensors(Payload, frozen=True, kw_only=True):
    """The names of an attempt's `telemetry` values."""

    host: str
    trial: int
    attempt: int
    sensors: tuple[LiveSensor, ...]


class LiveValue(Payload, frozen=True, kw_only=True):
    """The result of a finished trial in one direction.

    `own` is the default metric of its engine, if it is not one of the metrics that all engines have.
    """

    direction: str
    iops: float | None
    bytes_per_s: float | None
    mean_ns: float | None
    p99_ns: int | None
    own: float | None
    own_text: str


class LiveCell(Payload, frozen=True, kw_only=True):
    """One trial in the grid of the plan."""

    trial: int
    state: str
    state_label: str
    reason: str
    invalid: str  # why its results are invalid; "" for valid results
    kernel_lines: int  # storage errors in the kernel log during the trial
    values: tuple[LiveValue, ...]


class LiveNow(Payload, frozen=True, kw_only=True):
    """The current trial of one host."""

    host: str
    target: str
    trial: int
    attempt: int
    point: str
    phase: str


class LiveRun(Payload, frozen=True, kw_only=True):
    """`cells` and `samples` are new since the cursor in the request; `more`: send the next request immediately."""

    number: int
    state: str
    state_label: str
    ended: bool
    total: int
    done: int
    failed: int
    cancelled: int
    lost: int
    progress: int  # trials in the progress bar: ended ones; of an ended run those that were measured or failed
    heading: str  # of the page of an open run
    elapsed_s: float | None
    lasted: str  # how long it has run, been paused or waited, as text
    seconds_left: float | None
    now: tuple[LiveNow, ...]
    cells: tuple[LiveCell, ...]
    samples: tuple[LiveSample, ...]
    sensors: tuple[LiveSensors, ...]  # of the attempts in `samples`
    cursor: str  # for the next request
    more: bool


class SearchHit(Payload, frozen=True, kw_only=True):
    """A hit in the command palette; `group` is the kind of its object."""

    group: str
    title: str
    address: str
    detail: str


class SearchHits(Payload, frozen=True, kw_only=True):
    hits: tuple[SearchHit, ...]
