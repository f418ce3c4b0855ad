"""The items of an attempt's reports, from its acceptance to its end."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import Count, LongText, Message, Name, Number, Text
from worker.contract.inventory import DriveHealth, Label, PurgeMethod
from worker.contract.packing import Packed
from worker.contract.workload import Step, Stopped


class Direction(StrEnum):
    READ = "read"
    WRITE = "write"
    TRIM = "trim"
    TRANSACTION = "transaction"  # of a database: its `ios` are transactions, and it has no bytes
    RESYNC = "resync"  # of an array that is checked or rebuilt: it has bytes, but no I/Os and no latencies


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class LatencyKind(StrEnum):
    LAT = "lat"  # fio's total latency
    CLAT = "clat"  # completion latency, if fio measures no total


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
    PREPARE = "prepare"
    COMMON_START = "common_start"  # ready, and waiting for the other hosts of the trial
    RUN = "run"


class Phase(Message, tag="phase", frozen=True, kw_only=True):
    """The worker's current phase. Each phase uses its own fields; the reader builds the sentence."""

    at: float
    name: PhaseName
    target: Text = ""  # purge: path of the drive
    method: PurgeMethod | None = None  # purge
    expected_s: Number | None = None  # purge: the duration that the drive reports
    layout: Text = ""  # layout: its line, as in a plan
    stream: StreamNumber | None = None  # prefill; prepare: null for a step of the whole trial
    files: Count | None = None  # prefill: how many files are written; 0 for a device
    file_bytes: Count | None = None  # prefill: size of each file, or of the part of the device; None: the whole device
    step: Step | None = None  # prepare
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None  # purge, prefill, prepare


class SettingRecord(Message, tag="setting", frozen=True, kw_only=True):
    """One setting: the requested value, and the value read after writing."""

    at: float
    name: Name
    device: Label  # kernel name, or a controller's PCI address; "" for host-wide
    before: Text
    asked: Text
    observed: Text
    meanwhile: bool = False  # read after the measurement: something else changed it from `before` to `observed`
    took_s: Number | None = None  # build time of a layout for this trial, including taking down the previous one


class SettingRestored(Message, tag="restored", frozen=True, kw_only=True):
    at: float
    name: Name
    device: Label
    value: Text  # the value to restore
    observed: Text
    restored: bool
    note: Text = ""  # why not, e.g. changed by another program since


class Purged(Message, tag="purged", frozen=True, kw_only=True):
    """A purge of a drive: the commands, the answer, and what the drive reads as now."""

    at: float
    device: Label
    serial: Label
    method: PurgeMethod
    commands: Annotated[tuple[Text, ...], Meta(max_length=20)]
    said: Text = ""  # from the program, or from the drive
    samples: Count  # number of evenly spread blocks read afterwards
    samples_not_zero: Count
    zeros_promised: bool | None = None  # whether the drive reports that it reads as zeros now; None: not reported
    seconds: Number


class Observed(Message, tag="observed", frozen=True, kw_only=True):
    """The observed configuration of the trial: everything that its result depends on."""

    at: float
    facts: dict[Name, Text]  # flat, e.g. "device.loop0.scheduler": "none", "kernel.release": "6.1.0"


class CommonStart(Message, tag="common_start", frozen=True, kw_only=True):
    """The common start of a trial on several hosts, as this host knows it."""

    at: float  # the start by the worker's clock
    start_at: float  # the same moment by the server's clock
    uncertainty_s: Number  # half the shortest round trip: the error of the server's clock on this host


class ReadingMoment(StrEnum):
    BEFORE = "before"  # the first writes of an attempt
    AFTER = "after"  # its last ones
    CLOSED = "closed"  # after the run's settings were restored and its layouts taken down


class DriveReading(Message, tag="drive_reading", frozen=True, kw_only=True):
    """The total bytes written to a drive, by the kernel's counter and by the drive's.

    Read before and after attempts that write; skipped if nothing was written since the run's last reading.
    """

    at: float
    moment: ReadingMoment
    device: Label  # kernel name
    drive: Name  # stable id
    serial: Label = ""
    model: Label = ""
    boot_id: Label  # the kernel's counter restarts with each boot
    kernel_written_bytes: Count | None = None  # by this host; None if its kernel does not count
    told: DriveHealth | None = None  # None: drives of this kind are not read


class SensorKind(StrEnum):
    """The kinds of telemetry values, with their units."""

    CPU_USER = "cpu_user"  # percent of one core's time in the interval, as all cpu_ kinds
    CPU_SYSTEM = "cpu_system"
    CPU_IRQ = "cpu_irq"  # hard and soft interrupts
    CPU_IOWAIT = "cpu_iowait"
    CPU_STEAL = "cpu_steal"  # taken by a hypervisor
    INTERRUPTS = "interrupts"  # per second
    TEMPERATURE = "temperature"  # °C
    POWER = "power"  # W
    MEMORY = "memory"  # bytes
    UTILISATION = "utilisation"  # percent of the time with I/O in flight, for a device under the target
    QUEUE_DEPTH = "queue_depth"  # time-weighted mean of I/Os in flight, for the same device


MAX_SENSORS = 2048


class Sensor(Message, frozen=True, kw_only=True):
    """One source of telemetry; `name` distinguishes sensors of a kind: cpu3, sdb, package-0, dirty."""

    kind: SensorKind
    name: Label


class Unit(StrEnum):
    SECONDS = "s"
    BYTES_PER_S = "B/s"
    PER_S = "1/s"
    PERCENT = "%"
    COUNT = ""


class Metric(Message, frozen=True, kw_only=True):
    """A metric of one engine, in addition to the common ones; its name is a key of `StreamResult.metrics`."""

    name: Name
    label: Label
    unit: Unit
    lower_is_better: bool = False


class StreamStarted(Message, tag="stream_started", frozen=True, kw_only=True):
    at: float
    stream: StreamNumber
    job_text: LongText
    command: tuple[Text, ...]
    metrics: Annotated[tuple[Metric, ...], Meta(max_length=20)] = ()  # metrics of its result
    sensors: Annotated[tuple[Sensor, ...], Meta(max_length=MAX_SENSORS)] = ()  # of the attempt, first stream only
    kernel_log: bool = False  # whether the kernel's log is read during the attempt


class DirectionSample(Message, frozen=True, kw_only=True):
    """One direction of one interval."""

    direction: Direction
    ios: Count  # completed in the interval
    bytes: Count
    latency: Packed  # of the I/Os that the engine reported in the interval
    p50_ns: Count | None = None
    p99_ns: Count | None = None
    p999_ns: Count | None = None


class DeviceSample(Message, frozen=True, kw_only=True):
    """From /sys/block/<name>/stat over the same interval.

    If several devices are under one file system, `device` names all of them, the utilisation is their mean, and the
    other values are sums.
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

    All samples of a stream add up to its result. `estimated`: the engine reported nothing at the end of the interval.
    Its I/Os are a part of those of the engine's next report: none while the device completed nothing, else as many as
    its length has of the time in which the device completed anything.
    """

    stream: StreamNumber
    offset_ms: Milliseconds  # end of the interval, since the measured part began (after the ramp)
    length_ms: Milliseconds
    at: float  # Unix time of the interval's end
    directions: Annotated[tuple[DirectionSample, ...], Meta(max_length=3)]  # all of the workload, also without I/Os
    estimated: bool = False
    device: DeviceSample | None = None
    # A value for each sensor of the stream's start, over the same interval; null without a value.
    telemetry: Annotated[tuple[float | None, ...], Meta(max_length=MAX_SENSORS)] = ()


class KernelLine(Message, frozen=True, kw_only=True):
    """A line of the kernel log about a storage error."""

    sequence: Count  # the kernel's sequence number since boot
    at: float
    level: Annotated[int, Meta(ge=0, le=7)]  # syslog level: 3 error, 4 warning, 6 information
    text: Text
    elsewhere: bool = False  # it names neither the trial's devices nor their parents or links


class KernelLog(Message, tag="kernel_log", frozen=True, kw_only=True):
    """Kernel log lines during the attempt, unchanged. A line that is sent twice is stored once."""

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

    @property
    def has_latencies(self) -> bool:
        """False for a resync, whose I/Os are unknown, and for a direction of a mix without any I/O."""
        return self.direction is not Direction.RESYNC and self.ios > 0


class MediaType(StrEnum):
    JSON = "application/json"
    TEXT = "text/plain"
    CSV = "text/csv"


class Attachment(Message, frozen=True, kw_only=True):
    """A file that the engine wrote, such as its own result, stored unchanged."""

    name: Annotated[str, Meta(max_length=60, pattern=r"^[a-z0-9][a-z0-9_-]*\.[a-z0-9]+\Z")]  # fio.json
    media_type: MediaType
    text: Annotated[str, Meta(max_length=2 * 1024 * 1024)]


class StreamResult(Message, tag="stream_result", frozen=True, kw_only=True):
    stream: StreamNumber
    started_at: float
    began_at: float | None = None  # when the measured part began, by the engine's own time
    ended_at: float
    engine_version: Label
    exit_code: int
    stderr: LongText
    directions: Annotated[tuple[DirectionResult, ...], Meta(max_length=3)]
    usr_cpu_percent: Number  # percent of one CPU, all processes of the engine together: may exceed 100
    sys_cpu_percent: Number
    device: DeviceSample | None = None  # over the whole stream, or over the window of its stop rule
    samples: Count = 0  # number of sent samples, to detect missing ones
    stopped: Stopped | None = None  # only with a stop rule
    stalled_s: Number = 0  # the engine was killed after a stall of this length; the result covers the time before
    metrics: dict[Name, Number] = {}  # values of the whole stream, by the names of its start
    attachments: Annotated[tuple[Attachment, ...], Meta(max_length=8)] = ()  # each with a different name


class Finished(Message, tag="finished", frozen=True, kw_only=True):
    """The last item of an attempt. A failure has a code of `docs/reference/message-contract.md` and a sentence."""

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
    | CommonStart
    | StreamStarted
    | Sample
    | KernelLog
    | DriveReading
    | StreamResult
    | Finished
)
