"""What an attempt has to tell, item by item: from its acceptance to its end."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import Count, LongText, Message, Name, Number, Text
from worker.contract.inventory import DriveHealth, Label
from worker.contract.packing import Packed
from worker.contract.purge import PurgeMethod


class Direction(StrEnum):
    READ = "read"
    WRITE = "write"
    TRIM = "trim"


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class LatencyKind(StrEnum):
    LAT = "lat"  # fio's total latency
    CLAT = "clat"  # completion latency, where fio keeps no total


StreamNumber = Annotated[int, Meta(ge=0, le=63)]


class Accepted(Message, tag="accepted", frozen=True, kw_only=True):
    """The order is in the journal."""

    at: float  # Unix time, s
    worker_version: Label


class PhaseName(StrEnum):
    GUARD = "guard"
    PURGE = "purge"
    LAYOUT = "layout"
    SETTINGS = "settings"
    PREFILL = "prefill"
    RUN = "run"


class Phase(Message, tag="phase", frozen=True, kw_only=True):
    """What the worker is doing now. Each phase fills the fields that it has; the reader makes the sentence."""

    at: float
    name: PhaseName
    target: Text = ""  # purge: path of the drive
    method: PurgeMethod | None = None  # purge
    expected_s: Number | None = None  # purge: how long the drive says that it takes
    layout: Text = ""  # layout: what is built, as in a plan
    stream: StreamNumber | None = None  # prefill
    files: Count | None = None  # prefill: how many files are written; 0 for a device
    file_bytes: Count | None = None  # prefill: size of each file, or of the part of the device; None: the whole device
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None  # purge, prefill


class SettingRecord(Message, tag="setting", frozen=True, kw_only=True):
    """One setting, as asked for and as observed after writing."""

    at: float
    name: Name
    device: Label  # kernel name, or a controller's PCI address; "" for host-wide
    before: Text
    asked: Text
    observed: Text
    meanwhile: bool = False  # read after the measurement: something else changed it from `before` to `observed`
    took_s: Number | None = None  # of a layout that was built for this trial: with taking down what stood before


class SettingRestored(Message, tag="restored", frozen=True, kw_only=True):
    at: float
    name: Name
    device: Label
    value: Text  # what it was to be put back to
    observed: Text
    restored: bool
    note: Text = ""  # why not, e.g. changed by somebody else since


class Purged(Message, tag="purged", frozen=True, kw_only=True):
    """A drive was purged: what was sent, what was said, and what it reads as now."""

    at: float
    device: Label
    serial: Label
    method: PurgeMethod
    commands: Annotated[tuple[Text, ...], Meta(max_length=20)]
    said: Text = ""  # by the program, or by the drive
    samples: Count  # evenly spread blocks that were read afterwards
    samples_not_zero: Count
    zeros_promised: bool | None = None  # whether the drive says that it reads as zeros now; None: it does not say
    seconds: Number


class Observed(Message, tag="observed", frozen=True, kw_only=True):
    """The configuration under which the trial ran: everything a result depends on and that was really there."""

    at: float
    facts: dict[Name, Text]  # flat, e.g. "device.loop0.scheduler": "none", "kernel.release": "6.1.0"


class ReadingMoment(StrEnum):
    BEFORE = "before"  # the first writes of an attempt
    AFTER = "after"  # its last ones
    CLOSED = "closed"  # when the run's settings were put back and its layouts taken down


class DriveReading(Message, tag="drive_reading", frozen=True, kw_only=True):
    """What a drive was written to in all, by the kernel's counter and by its own.

    Taken around attempts that write, and not again where nothing was written since the last one of the run.
    """

    at: float
    moment: ReadingMoment
    device: Label  # kernel name
    drive: Name  # stable id
    serial: Label = ""
    model: Label = ""
    boot_id: Label  # the kernel's counter begins anew with each
    kernel_written_bytes: Count | None = None  # by this host; None where its kernel does not count
    told: DriveHealth | None = None  # None: drives of its kind are not asked


class SensorKind(StrEnum):
    """What a value beside the I/O is, and in which unit."""

    CPU_USER = "cpu_user"  # percent of one core's time over the interval, as all of cpu_
    CPU_SYSTEM = "cpu_system"
    CPU_IRQ = "cpu_irq"  # hard and soft interrupts
    CPU_IOWAIT = "cpu_iowait"
    CPU_STEAL = "cpu_steal"  # taken by a hypervisor
    INTERRUPTS = "interrupts"  # a second
    TEMPERATURE = "temperature"  # °C
    POWER = "power"  # W
    MEMORY = "memory"  # bytes
    UTILISATION = "utilisation"  # percent of the time with I/O in flight, of a device under the target
    QUEUE_DEPTH = "queue_depth"  # time-weighted mean of the same


MAX_SENSORS = 2048


class Sensor(Message, frozen=True, kw_only=True):
    """One thing that is read beside the I/O; `name` tells those of a kind apart: cpu3, sdb, package-0, dirty."""

    kind: SensorKind
    name: Label


class Unit(StrEnum):
    SECONDS = "s"
    BYTES_PER_S = "B/s"
    PER_S = "1/s"
    COUNT = ""


class Metric(Message, frozen=True, kw_only=True):
    """A figure that an engine measures besides those that all have; its name is a key of `StreamResult.metrics`."""

    name: Name
    label: Label
    unit: Unit
    lower_is_better: bool = False


class StreamStarted(Message, tag="stream_started", frozen=True, kw_only=True):
    at: float
    stream: StreamNumber
    job_text: LongText
    command: tuple[Text, ...]
    metrics: Annotated[tuple[Metric, ...], Meta(max_length=20)] = ()  # that its result will have
    sensors: Annotated[tuple[Sensor, ...], Meta(max_length=MAX_SENSORS)] = ()  # of the attempt, with its first stream
    kernel_log: bool = False  # whether the kernel's log is read during the attempt


class DirectionSample(Message, frozen=True, kw_only=True):
    """One direction in one interval."""

    direction: Direction
    ios: Count  # completed in the interval
    bytes: Count
    latency: Packed  # of the I/Os that the engine reported in the interval
    p50_ns: Count | None = None
    p99_ns: Count | None = None
    p999_ns: Count | None = None


class DeviceSample(Message, frozen=True, kw_only=True):
    """From /sys/block/<name>/stat over the same interval.

    Of the several devices under one file system together, `device` names all, the utilisation is their mean, the
    rest are sums.
    """

    device: Label
    utilisation_percent: Annotated[float, Meta(ge=0, le=100)]
    queue_depth: Number  # time-weighted mean of I/Os in flight
    read_ios: Count
    write_ios: Count
    read_bytes: Count
    write_bytes: Count


Milliseconds = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Sample(Message, tag="sample", frozen=True, kw_only=True):
    """One interval of a stream, about a second long. Intervals follow each other without gaps, in order.

    `estimated`: the engine reported nothing in the interval, so I/Os and bytes are what the device completed, scaled by
    the engine's share of the device's bytes so far. The next samples are corrected, so that the sum is the engine's.
    """

    stream: StreamNumber
    offset_ms: Milliseconds  # end of the interval, since the measured part began (after the ramp)
    length_ms: Milliseconds
    at: float  # Unix time of the interval's end
    directions: Annotated[tuple[DirectionSample, ...], Meta(max_length=3)]  # all of the workload's, also without I/Os
    estimated: bool = False
    device: DeviceSample | None = None
    # A value for each sensor of the stream's start, over the same interval; null where there is none in it.
    telemetry: Annotated[tuple[float | None, ...], Meta(max_length=MAX_SENSORS)] = ()


class KernelLine(Message, frozen=True, kw_only=True):
    """A line of the kernel's log about trouble with storage."""

    sequence: Count  # the kernel's own number of it, since its start
    at: float
    level: Annotated[int, Meta(ge=0, le=7)]  # as syslog's: 3 error, 4 warning, 6 information
    text: Text
    elsewhere: bool = False  # it names other devices of the host, and none of the trial's


class KernelLog(Message, tag="kernel_log", frozen=True, kw_only=True):
    """What the kernel said during the attempt, as it says it. A line that comes twice is kept once."""

    lines: Annotated[tuple[KernelLine, ...], Meta(min_length=1, max_length=200)]


class DirectionResult(Message, frozen=True, kw_only=True):
    direction: Direction
    ios: Count
    bytes: Count
    runtime_ms: Count
    iops: Number
    bytes_per_s: Number
    latency_kind: LatencyKind
    latency_min_ns: Number
    latency_mean_ns: Number
    latency_max_ns: Number
    latency_stddev_ns: Number
    latency: Packed  # the whole histogram


class MediaType(StrEnum):
    JSON = "application/json"
    TEXT = "text/plain"
    CSV = "text/csv"


class Attachment(Message, frozen=True, kw_only=True):
    """A file that the engine made, such as its own result, kept as it is."""

    name: Annotated[str, Meta(max_length=60, pattern=r"^[a-z0-9][a-z0-9_-]*\.[a-z0-9]+\Z")]  # fio.json
    media_type: MediaType
    text: Annotated[str, Meta(max_length=2 * 1024 * 1024)]


class StreamResult(Message, tag="stream_result", frozen=True, kw_only=True):
    stream: StreamNumber
    started_at: float
    ended_at: float
    engine_version: Label
    exit_code: int
    stderr: LongText
    directions: Annotated[tuple[DirectionResult, ...], Meta(max_length=3)]
    usr_cpu_percent: Number  # of one CPU, all processes of fio together: over 100 with several
    sys_cpu_percent: Number
    device: DeviceSample | None = None  # over the whole stream
    samples: Count = 0  # how many were sent, so a gap would be seen
    stalled_s: Number = 0  # the engine was killed after so long a stall; what was measured before it is the result
    metrics: dict[Name, Number] = {}  # of the whole stream, by the names of its start
    attachments: Annotated[tuple[Attachment, ...], Meta(max_length=8)] = ()  # each with a name of its own


class Finished(Message, tag="finished", frozen=True, kw_only=True):
    """The last item of an attempt. A failure has a code of `docs/message-contract.md` and words."""

    at: float
    outcome: Outcome
    code: Annotated[str, Meta(max_length=60)] = ""
    message: LongText = ""


Item = (
    Accepted
    | Phase
    | SettingRecord
    | SettingRestored
    | Purged
    | Observed
    | StreamStarted
    | Sample
    | KernelLog
    | DriveReading
    | StreamResult
    | Finished
)
