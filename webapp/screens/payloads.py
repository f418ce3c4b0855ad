"""What pages send to their scripts. `frontend/src/payloads/` checks the same shapes when reading;
the examples in `frontend/tests/vectors/` are read by the tests of both sides.
"""

import msgspec


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that a script of ours reads. No field has a default: every one is always sent."""


class ChartCeiling(Payload, frozen=True, kw_only=True):
    """What a target cannot exceed, bytes/s; `low` to `high` is what its limiting link gives in practice."""

    text: str
    value: float
    low: float | None
    high: float | None


class Marks(Payload, frozen=True, kw_only=True):
    """How often marks of invalid results were set or taken back."""

    count: int


class LiveSample(Payload, frozen=True, kw_only=True):
    """One direction of one second of a stream."""

    host: str
    trial: int  # number in the run
    attempt: int
    stream: int
    second: int
    at_s: float  # end of the interval, since the run began
    direction: str
    iops: float
    bytes_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    queue_depth: float | None
    utilisation_percent: float | None
    telemetry: tuple[float | None, ...]  # in the order of the attempt's sensors; empty in all but one direction


class LiveSensor(Payload, frozen=True, kw_only=True):
    """One line beside the I/O: the panel it belongs to, and its name there."""

    panel: str  # a SensorKind, or cpu for what was made of all cores
    name: str


class LiveSensors(Payload, frozen=True, kw_only=True):
    """What an attempt's `telemetry` values are of."""

    host: str
    trial: int
    attempt: int
    sensors: tuple[LiveSensor, ...]


class LiveValue(Payload, frozen=True, kw_only=True):
    """What a finished trial measured in one direction."""

    direction: str
    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: int | None


class LiveCell(Payload, frozen=True, kw_only=True):
    """One trial in the grid of the plan."""

    trial: int
    state: str
    state_label: str
    reason: str
    invalid: str  # why its results are not to be trusted; "" where they are
    kernel_lines: int  # about trouble with storage, in the kernel's log meanwhile
    values: tuple[LiveValue, ...]


class LiveNow(Payload, frozen=True, kw_only=True):
    """What one host is doing for this run."""

    host: str
    target: str
    trial: int
    attempt: int
    what: str
    phase: str


class LiveRun(Payload, frozen=True, kw_only=True):
    """`cells` and `samples` are what is new after the cursor that was sent; `more`: ask again at once."""

    number: int
    state: str
    state_label: str
    ended: bool
    total: int
    done: int
    failed: int
    cancelled: int
    lost: int
    elapsed_s: float | None
    lasted: str  # how long it has run, been paused or waited, in words
    seconds_left: float | None
    now: tuple[LiveNow, ...]
    cells: tuple[LiveCell, ...]
    samples: tuple[LiveSample, ...]
    sensors: tuple[LiveSensors, ...]  # of the attempts that the samples are of
    cursor: str  # to be sent back as it is
    more: bool
