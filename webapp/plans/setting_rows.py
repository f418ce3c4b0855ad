"""The settings in the table of factors: names are the worker's, values are stored as text.

A randomised run changes costly settings most slowly: first kernel-wide settings, then settings of a controller, then
settings that reset others of the device.
"""

from dataclasses import dataclass
from enum import StrEnum

from webapp.plans.values import Choice, Token, Value, Values, number_token

# The type of a factor: name, label, kind of values, and cost in the order of a run.


class FactorKind(StrEnum):
    WORKLOAD = "workload"
    OPTION = "option"  # further options of the workload; in a point only if the plan sets it
    PROCESS = "process"  # of the engine's processes: part of the workload; in a point only if the plan sets it
    STOPPING = "stopping"  # end of a trial: part of the workload; in a point only if the plan sets it
    DRIVE = "drive"  # done to the drive before the trial; in a point only if the plan sets it
    CHANGE = "change"  # set by Sweetspot: name of the change from a base (rule `one at a time`), stream of a result
    STREAMS = "streams"  # streams of a trial with different workloads
    TARGETS = "targets"  # number of targets of a trial; in a point only if the plan sets it
    LAYOUT = "layout"  # of drives: built before its trials, removed at the end
    SETTING = "setting"  # of the host: applied, read back, restored at the end


@dataclass(frozen=True)
class Factor:
    """`cost` orders the factors of a randomised run: the higher, the more slowly it changes; 0 is shuffled freely."""

    name: str
    label: str
    values: Values
    unit: str = ""  # of the stored values: B, s, %, …
    kind: FactorKind = FactorKind.WORKLOAD
    cost: int = 0
    default: Value = None
    help: str = ""
    directories_only: bool = False  # affects only directories, not block devices or file targets
    example: str = ""  # levels of a new row in the editor, if there is no default

    @property
    def numeric(self) -> bool:
        return self.values.numeric

    def format(self, value: object) -> str:
        """Format a stored value for people; an invalid value is shown unchanged."""
        if value is None or isinstance(value, str | int | bool):
            return self.values.format(value)
        return str(value)


HOST, CONTROLLER = 130, 120  # `cost` of settings that affect more than the target
_CACHE = Choice(("write back", "write through"))
_ON_OFF = Choice(("0", "1"), {"0": "off", "1": "on"})
_NUMBER = number_token()


@dataclass(frozen=True)
class SettingRow:
    name: str
    label: str
    values: Values
    cost: int
    unit: str = ""
    help: str = ""
    example: str = ""  # levels of a new row in the editor

    @property
    def host_wide(self) -> bool:
        return self.cost == HOST


def _row(name: str, label: str, values: Values, *, cost: int, unit: str = "", text: str = "") -> SettingRow:
    return SettingRow(name, label, values, cost, unit, text)


def _tunable(name: str, label: str, *, unit: str = "", text: str = "") -> SettingRow:
    needed = f"only with scheduler {name.partition('.')[0]}"
    words = f"{text}; {needed}" if text else needed
    return _row(name, label, number_token(f" {unit}" if unit else ""), cost=60, unit=unit, text=words)


_DEVICE = (
    SettingRow("scheduler", "I/O scheduler", Token(), cost=100, example="none, mq-deadline"),
    _row("nr_requests", "Queue size", _NUMBER, cost=90, text="maximum requests in the block queue"),
    _row("wbt_lat_usec", "Write-back throttle", number_token(" µs", negative=True), cost=80, unit="µs"),
    _row("read_ahead_kb", "Read-ahead", number_token(" KiB"), cost=70, unit="KiB"),
    _row(
        "read_ahead_sectors", "Read-ahead (sectors)", number_token(" sectors"), cost=70, unit="sectors",
        text="of 512 bytes, as blockdev --setra counts",
    ),
    _row("max_sectors_kb", "Largest request", number_token(" KiB"), cost=75, unit="KiB"),
    _row("rq_affinity", "Completion CPU", _NUMBER, cost=60, text="0 any, 1 same group, 2 same CPU"),
    _row("nomerges", "No merges", _NUMBER, cost=60, text="0 merge, 1 simple only, 2 never"),
    _row("io_poll", "Polling", _ON_OFF, cost=75, text="follows the driver's poll queues; newer kernels take no write"),
    _row("rotational", "Rotational", _ON_OFF, cost=75, text="whether the kernel treats the drive as rotational"),
    _row("add_random", "Feeds random pool", _ON_OFF, cost=75),
    _row("iostats", "I/O statistics", _ON_OFF, cost=75, text="off also disables the device's samples"),
    _row(
        "write_cache", "Flushes (write_cache)", _CACHE, cost=75,
        text="write through: the kernel sends no flushes, as nobarrier did; data may be lost in a power failure",
    ),
    _row("queue_depth", "Drive queue depth", _NUMBER, cost=75, text="maximum queued commands of a SCSI or SATA drive"),
    _row("drive_write_cache", "Drive write cache", _CACHE, cost=95, text="inside a SCSI or SATA drive"),
    _row(
        "controller.write_cache", "Controller write cache",
        Choice(("write back", "write through", "always write back")), cost=96,
        text="of a RAID controller's virtual drive; always: even without a working battery",
    ),
    _row(
        "controller.read_ahead", "Controller read-ahead", Choice(("none", "read ahead", "adaptive")), cost=96,
        text="of a RAID controller's virtual drive; adaptive only with MegaCli",
    ),
    _row(
        "controller.io_policy", "Controller I/O policy", Choice(("direct", "cached")), cost=96,
        text="whether reads go through the controller's cache",
    ),
    _row(
        "controller.disk_cache", "Controller disk cache", Choice(("enabled", "disabled", "unchanged")), cost=96,
        text="cache inside the drives of a virtual drive; unchanged: each drive's default",
    ),
    _row("md.stripe_cache_size", "md stripe cache", _NUMBER, cost=75, text="pages per drive; RAID 4, 5, 6"),
    _row("md.sync_speed_min", "md slowest rebuild", Token(example="`1000` or `system`"), cost=75, text="KiB/s"),
    _row("md.sync_speed_max", "md fastest rebuild", Token(example="`200000` or `system`"), cost=75, text="KiB/s"),
)  # fmt: skip
_TUNABLES = (
    _tunable("mq-deadline.read_expire", "Read deadline", unit="ms"),
    _tunable("mq-deadline.write_expire", "Write deadline", unit="ms"),
    _tunable("mq-deadline.writes_starved", "Writes starved", text="batches of reads before one of writes"),
    _tunable("mq-deadline.fifo_batch", "Batch", text="requests of one direction"),
    _tunable("mq-deadline.front_merges", "Front merges", text="0 off"),
    _tunable("mq-deadline.async_depth", "Asynchronous depth"),
    _tunable("mq-deadline.prio_aging_expire", "Priority aging", unit="ms"),
    _tunable("kyber.read_lat_nsec", "Read latency target", unit="ns"),
    _tunable("kyber.write_lat_nsec", "Write latency target", unit="ns"),
    _tunable("bfq.low_latency", "Low latency", text="0 off"),
    _tunable("bfq.slice_idle_us", "Idling for a process", unit="µs"),
    _tunable("bfq.max_budget", "Largest budget", unit="sectors", text="0 chosen by bfq"),
    _tunable("bfq.timeout_sync", "Time of a process", unit="ms"),
    _tunable("bfq.strict_guarantees", "Strict guarantees", text="1 on"),
    _tunable("bfq.fifo_expire_sync", "Synchronous deadline", unit="ms"),
    _tunable("bfq.fifo_expire_async", "Asynchronous deadline", unit="ms"),
    _tunable("bfq.back_seek_max", "Farthest seek back", unit="KiB"),
    _tunable("bfq.back_seek_penalty", "Penalty of a seek back"),
)
_CONTROLLER = (
    _row(
        "irq_affinity", "Interrupts",
        Token(pattern=r"cpu\d{1,4}|node\d{1,3}|local|spread|all", example="`cpu0`, `node1`, `local`, `spread`, `all`"),
        cost=CONTROLLER, text="CPUs that handle the controller's interrupts; affects all its drives",
    ),
    _row("nvme.write_cache", "NVMe write cache", _ON_OFF, cost=CONTROLLER, text="volatile, of the controller"),
    _row("nvme.power_state", "NVMe power state", _NUMBER, cost=CONTROLLER, text="0 is the fastest"),
)  # fmt: skip
_HOST = (
    _row("irqbalance", "irqbalance", Choice(("on", "off")), cost=HOST, text="the daemon that distributes interrupts"),
    _row("cpu.governor", "CPU governor", Token(example="`performance`"), cost=HOST),
    _row("cpu.energy_preference", "CPU energy preference", Token(example="`balance_performance`"), cost=HOST),
    _row("cpu.deepest_idle_state", "Deepest idle state", _NUMBER, cost=HOST, text="number of the C-state; 0 polls"),
    _row("vm.dirty_ratio", "Dirty limit", number_token(" %"), cost=HOST, unit="%", text="of memory"),
    _row("vm.dirty_bytes", "Dirty limit (bytes)", number_token(" B"), cost=HOST, unit="B"),
    _row("vm.dirty_background_ratio", "Dirty background", number_token(" %"), cost=HOST, unit="%", text="of memory"),
    _row("vm.dirty_background_bytes", "Dirty background (bytes)", number_token(" B"), cost=HOST, unit="B"),
    _row("vm.dirty_expire_centisecs", "Dirty age", number_token(" cs"), cost=HOST, unit="cs", text="1/100 s"),
    _row("vm.dirty_writeback_centisecs", "Write-back period", number_token(" cs"), cost=HOST, unit="cs"),
    _row("transparent_hugepage", "Huge pages", Choice(("always", "madvise", "never")), cost=HOST),
)
SETTING_ROWS = (*_DEVICE, *_TUNABLES, *_CONTROLLER, *_HOST)
# Settings of the controller in front of a drive, or of its virtual drive.
OF_CONTROLLERS = tuple(row.name for row in SETTING_ROWS if row.cost == CONTROLLER or row.name.startswith("controller."))
# Different files for one state of the kernel: a plan may name only one of them.
SAME_STATE = (
    ("read_ahead_kb", "read_ahead_sectors"),
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
)


def scheduler_needed(name: str) -> str:
    """The scheduler that a tunable belongs to, "" for any other setting."""
    first, _, rest = name.partition(".")
    return first if rest and first in ("mq-deadline", "kyber", "bfq") else ""
