"""Dimensions by which results are compared: every factor, the parts of a layout, attributes of results such as host,
run and direction, the observed configuration, and each fact of it (`fact.device.firmware`). At the end, how a
comparison interprets facts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from webapp.analysis.answer import Level
from webapp.core.formatting import bytes_binary
from webapp.hosts.selectors import NO_LABEL
from webapp.plans.factors import AT_ONCE, FACTORS, HOSTS_AT_ONCE, OTHERS, Value
from webapp.plans.setting_rows import SETTING_ROWS, scheduler_needed
from webapp.plans.streams import ALONE
from webapp.results.reading.filter import FACT_PREFIX, NOT_SET, UNKNOWN
from webapp.results.reading.rows import ResultRow
from worker.contract.layouts import BtrfsProfile, Layout, Maker, Stripe
from worker.recipes.layouts.text import LayoutError, parse

# Labels of the facts of a configuration (`worker.inventory`), in the order in which pages list them.

LABELS = {
    "host": "Host", "device.size_bytes": "Size", "device.serial": "Serial", "device.transport": "Link",
    "device.firmware": "Firmware", "device.model": "Model", "kernel.release": "Kernel",
    "kernel.command_line": "Kernel command line", "cpu.model": "CPU", "cpu.cores": "CPU cores",
    "cpu.threads": "CPU threads", "cpu.sockets": "CPU sockets", "cpu.governor": FACTORS["cpu.governor"].label,
    "memory.bytes": "Memory", "distribution": "Distribution", "hypervisor": "Hypervisor", "tool": "Tool",
    "device.controller.model": "Controller", "device.controller.firmware": "Controller firmware",
    "device.controller.driver": "Driver", "device.controller.driver_version": "Driver version",
    "device.write_cache": "Cache policy", "file_system": "File system", "file_system.options": "Mount options",
    "drive_state": "Drive state", "worker.version": "Worker", "target.kind": "Kind of target", "device.kind": "Kind",
    "device.logical_block_size": "Logical block size", "device.physical_block_size": "Physical block size",
    "device.minimum_io_size": "Smallest efficient I/O", "device.optimal_io_size": "Optimal I/O",
    "device.max_hw_sectors_kb": "Largest request of the hardware",
    "device.fua": "Force unit access", "device.zoned": "Zoned",
}  # fmt: skip


def label_of_fact(name: str) -> str:
    """The label of the setting that the fact observes, or the name itself if it has no label."""
    scope, _, setting = name.partition(".")
    if name in LABELS or scope not in ("device", "host") or setting not in FACTORS:
        return LABELS.get(name, name)
    return FACTORS[setting].label


# Parts of a layout as dimensions of their own: drives, RAID level, chunk, stripe over arrays, file system, share.
#
# They are read from the line that a plan states, or from the label of an import if it is such a line.

PREFIX = "layout."
ABSENT = Level("", "none", None)  # the layout does not have the part, or the result has no layout


@dataclass(frozen=True)
class LayoutPart:
    """`read` returns the number in a layout, or its name; None if the layout does not have the part."""

    label: str
    read: Callable[[Layout], int | str | None]
    words: Callable[[int], str] = str

    def level(self, layout: Layout) -> Level:
        value = self.read(layout)
        if value is None:
            return ABSENT
        return Level(value, value, None) if isinstance(value, str) else Level(str(value), self.words(value), value)


def _layout_parts_level(layout: Layout) -> str:
    """The RAID level of the arrays, and that of btrfs over them."""
    of_btrfs = layout.btrfs_profile is not BtrfsProfile.SINGLE
    return f"btrfs {layout.btrfs_profile}" if of_btrfs else str(layout.raid)


NUMBERS = {
    f"{PREFIX}drives": LayoutPart("Drives", lambda layout: layout.drives),
    f"{PREFIX}chunk": LayoutPart("Chunk size", lambda layout: layout.chunk_bytes, bytes_binary),
    f"{PREFIX}stripe": LayoutPart("Stripe over arrays", lambda layout: layout.stripe_bytes, bytes_binary),
    f"{PREFIX}share": LayoutPart("Share of the drives", lambda layout: layout.share_percent, "{} %".format),
}
NAMES = {
    f"{PREFIX}level": LayoutPart("RAID level", _layout_parts_level),
    f"{PREFIX}file_system": LayoutPart("File system", lambda layout: str(layout.file_system)),
}
LAYOUT_PARTS: Mapping[str, LayoutPart] = NUMBERS | NAMES


@lru_cache(maxsize=1_000)
def layout_of(line: str) -> Layout | None:
    """None for no layout, and for a label that is not a line of a layout."""
    try:
        return parse(line) if line else None
    except LayoutError:
        return None


def part_of(name: str, line: str) -> Level:
    """The level of a part; thousands of rows share a few lines."""
    layout = layout_of(line)
    return LAYOUT_PARTS[name].level(layout) if layout else ABSENT


def varying_parts(lines: Iterable[str]) -> list[str]:
    """Parts with several levels. A layout without the part, such as RAID 1 without a chunk, does not differ in it."""
    known = set(lines)
    return [name for name in LAYOUT_PARTS if len({part_of(name, line) for line in known} - {ABSENT}) > 1]


def others_of(line: str) -> str:
    """Everything that no part says, in words; the line itself if it is not a line of a layout."""
    layout = layout_of(line)
    if layout is None:
        return line
    lvm = layout.stripe is Stripe.LVM
    words = [
        f"{layout.arrays} arrays" if layout.arrays > 1 else "",
        "by a controller" if layout.maker is Maker.CONTROLLER else "",
        f"{layout.spans} spans" if layout.spans > 1 else "",
        f"over arrays by {layout.stripe}" if layout.stripe is not Stripe.NONE else "",
        f"extent {bytes_binary(layout.extent_bytes)}" if lvm else "",
        f"align {bytes_binary(layout.data_alignment_bytes)}" if layout.data_alignment_bytes else "",
        "" if layout.told_geometry else "untold",
        *map(str, layout.policies),
        *layout.mount_options,
    ]
    return ", ".join(filter(None, words)) or "default options"


LABEL = "label"
PART = "part"  # of a plan
PRODUCTS = frozenset({"target", "host", "model", "serial", LABEL})  # results are not matched over targets beside these
MATCHED = "matched"  # only as x
JOINER = " · "  # between the parts of its levels
DIGEST_SHOWN = 10  # characters of a configuration's digest, as in an address


@dataclass(frozen=True)
class Dimension:
    """`level` reads the attribute of the row that has the dimension's name."""

    name: str
    label: str
    numeric: bool = False

    def level(self, row: ResultRow) -> Level:
        plain = str(getattr(row, self.name))
        return Level(plain, plain or UNKNOWN, None)


@dataclass(frozen=True)
class TargetDimension(Dimension):
    def level(self, row: ResultRow) -> Level:
        return Level(row.target_name, row.target_name, None)


@dataclass(frozen=True)
class NumberDimension(Dimension):
    """A numbered thing: `run 17`."""

    word: str = ""

    def level(self, row: ResultRow) -> Level:
        number: int = getattr(row, self.name)
        return Level(str(number), f"{self.word} {number}", None)


@dataclass(frozen=True)
class RunDimension(Dimension):
    def level(self, row: ResultRow) -> Level:
        if row.imported:
            return Level(f"import-{row.imported}", row.import_title, None)
        return Level(str(row.run), f"run {row.run}", None)


@dataclass(frozen=True)
class ImportDimension(Dimension):
    """Results that no run of ours measured, by import."""

    def level(self, row: ResultRow) -> Level:
        return Level(str(row.imported), row.import_title or "own runs", None)


@dataclass(frozen=True)
class LayoutDimension(Dimension):
    """The layout that a plan built; of an import, its label with the drives: `RAID 10 of 8 × SAS hard disk`."""

    def level(self, row: ResultRow) -> Level:
        name = array_of(row) if row.imported else row.layout
        return Level(name, name, None) if name else ABSENT_LEVEL


def array_of(row: ResultRow) -> str:
    """The layout of an import and its drives, as the file names them; "" without a layout. A label that names the
    drives itself is complete: `RAID 0 of SSDs`."""
    if not row.layout or not row.model or " of " in row.layout or row.model in row.layout:
        return row.layout
    counted = _COUNTED.fullmatch(row.layout)
    return f"{counted[1]} of {counted[2]} × {row.model}" if counted else f"{row.layout} {row.model}"


_COUNTED = re.compile(r"(.+) × (\d+)", re.ASCII)  # RAID 10 × 8


@dataclass(frozen=True)
class LayoutPartDimension(Dimension):
    def level(self, row: ResultRow) -> Level:
        return part_of(self.name, row.layout)


@dataclass(frozen=True)
class DriveDimension(Dimension):
    """A drive is identified by its serial, or by its target if the serial is unknown."""

    def level(self, row: ResultRow) -> Level:
        if not row.serial:
            return Level(row.target_name, f"{row.target_name} (no serial)", None)
        return Level(row.serial, f"{row.model} {row.serial}".strip(), None)


class _PartLevel(Level, frozen=True, gc=False):
    """Parts keep the order in which they were measured, which is that of the plan: rows are in this order."""

    @property
    def order(self) -> tuple[bool, float, float, tuple[str | int, ...]]:
        return True, 0.0, 0.0, ()


@dataclass(frozen=True)
class PartDimension(Dimension):
    """The part of the plan."""

    def level(self, row: ResultRow) -> Level:
        return _PartLevel(row.part, row.part or UNKNOWN, None)


@dataclass(frozen=True)
class LabelDimension(Dimension):
    """The label of a host in its group."""

    def level(self, row: ResultRow) -> Level:
        return Level(row.label or NO_LABEL, row.label or NO_LABEL, None)


@dataclass(frozen=True)
class ToolVersionDimension(Dimension):
    """`fio 3.33`; only the tool if its version is unknown."""

    def level(self, row: ResultRow) -> Level:
        return Level(row.tool_and_version, row.tool_and_version or UNKNOWN, None)


@dataclass(frozen=True)
class ConfigurationDimension(Dimension):
    def level(self, row: ResultRow) -> Level:
        short = row.configuration[:DIGEST_SHOWN]
        return Level(short, f"configuration {short}" if short else "none observed", None)


@lru_cache(maxsize=10_000, typed=True)
def matched_level(names: tuple[str, ...], values: tuple[Value | Level, ...], others: tuple[str, ...] = ()) -> Level:
    """Of factors and their values, ABSENT_LEVEL where a point has none, after `others`, such as the target."""
    pairs = zip(names, values, strict=True)
    levels = [(name, value if isinstance(value, Level) else _level(name, value)) for name, value in pairs]
    texts = [f"{label_of(name)} {level.text}" if _is_bare(level) else level.text for name, level in levels]
    keys = [*others, *(level.key for _, level in levels)]
    return Level(joined(keys, JOINER), JOINER.join([*others, *texts]) or "all", None)


def joined(keys: Sequence[str], separator: str) -> str:
    """One key of several. The separator and backslashes inside a key are escaped, so that two different lists never
    have the same key: "a,b" and "c" is not "a" and "b,c"."""
    if len(keys) == 1:
        return keys[0]
    mark = separator.strip()
    return separator.join([key.replace("\\", "\\\\").replace(mark, f"\\{mark}") for key in keys])


def _is_bare(level: Level) -> bool:
    """A level that says nothing without the label of its factor: `32` or `on`, but not `4 KiB`."""
    return level.text.isdecimal() or level.key in ("on", "off", NOT_SET.value)


# A factor that the point does not have: a setting left as the host had it.
ABSENT_LEVEL = Level(NOT_SET.value, NOT_SET.value, None)


@lru_cache(maxsize=10_000, typed=True)
def _level(name: str, value: Value) -> Level:
    """A level of a factor. Thousands of rows share a few levels, so each is formatted once."""
    factor = FACTORS[name]
    return Level(factor.values.write(value), factor.format(value), _number(value) if factor.numeric else None)


@dataclass(frozen=True)
class FactorDimension(Dimension):
    def level(self, row: ResultRow) -> Level:
        return _level(self.name, row.point[self.name]) if self.name in row.point else ABSENT_LEVEL


@dataclass(frozen=True)
class BesideDimension(FactorDimension):
    """The streams beside that of a result: `beside writer`, or `alone`."""

    def level(self, row: ResultRow) -> Level:
        level = super().level(row)
        known = level.key not in (ALONE, NOT_SET.value)
        return Level(level.key, f"beside {level.text}", None) if known else level


@dataclass(frozen=True)
class FactDimension(Dimension):
    """A fact of the observed configuration."""

    def level(self, row: ResultRow) -> Level:
        text = row.facts.get(self.name.removeprefix(FACT_PREFIX), "")
        return Level(text, text or UNKNOWN, None)


def _number(value: Value) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


_ATTRIBUTES = (
    Dimension("host", "Host"),
    TargetDimension("target", "Target"),
    Dimension("model", "Drive model"),
    DriveDimension("serial", "Drive"),
    Dimension("drive_state", "Drive state"),
    Dimension("controller", "Controller"),
    Dimension("tool", "Tool"),
    ToolVersionDimension("tool_version", "Tool and version"),
    Dimension("test", "Test of the tool"),
    ImportDimension("imported", "Import"),
    RunDimension("run", "Run"),
    Dimension("plan", "Plan"),
    PartDimension(PART, "Part"),
    LabelDimension(LABEL, "Label"),
    Dimension("direction", "Direction"),
    NumberDimension("repeat", "Repeat", word="repeat"),
    ConfigurationDimension("configuration", "Configuration"),
)
ATTRIBUTES: tuple[str, ...] = tuple(known.name for known in _ATTRIBUTES)

DIMENSIONS: Mapping[str, Dimension] = (
    {known.name: known for known in _ATTRIBUTES}
    | {factor.name: FactorDimension(factor.name, factor.label, factor.numeric) for factor in FACTORS.values()}
    | {MATCHED: Dimension(MATCHED, "Test point")}  # its levels: `cells.group`
    | {OTHERS: BesideDimension(OTHERS, FACTORS[OTHERS].label)}
    | {"layout": LayoutDimension("layout", FACTORS["layout"].label)}
    | {name: LayoutPartDimension(name, part.label, name in NUMBERS) for name, part in LAYOUT_PARTS.items()}
)


def dimension(name: str) -> Dimension | None:
    """The dimension with this name, or None."""
    if name.startswith(FACT_PREFIX) and len(name) > len(FACT_PREFIX):
        return FactDimension(name, label_of_fact(name.removeprefix(FACT_PREFIX)))
    factor = FACTORS.get(name)  # of a stream: reader.iodepth
    return DIMENSIONS.get(name) or (FactorDimension(name, factor.label, factor.numeric) if factor else None)


def known_dimension(name: str) -> Dimension:
    """The dimension with a name that was checked before. Raises LookupError."""
    known = dimension(name)
    if known is None:
        raise LookupError(name)
    return known


def label_of(name: str) -> str:
    return known_dimension(name).label


# How a comparison interprets the facts of a configuration. The names of facts are the worker's (`inventory.facts`).

# Facts that identify a target or device, also labels of imports: file name of the device, folder of the results. They
# are not reported if targets or hosts are compared.
IDENTITY = frozenset(
    f"device.{name}"
    for name in (
        "stable_id", "kind", "model", "serial", "firmware", "transport", "size_bytes", "below", "rotational",
        "max_hw_sectors_kb", "logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size",
        "zoned", "fua", "io_poll",
    )
) | {
    "target", "target.kind", "device", "file_system.size_bytes", "filename", "folder",
}  # fmt: skip

# Facts that change all the time and do not matter. Each build of a layout has another mount point.
VOLATILE = frozenset({"file_system.size_bytes", "file_system.mount"})

# Settings that the kernel changes together with another setting: a consequence, not a second cause.
EFFECTS: Mapping[str, frozenset[str]] = {
    "scheduler": frozenset(
        {"nr_requests", "wbt_lat_usec", *(row.name for row in SETTING_ROWS if scheduler_needed(row.name))}
    ),
    "vm.dirty_ratio": frozenset({"vm.dirty_bytes"}),
    "vm.dirty_bytes": frozenset({"vm.dirty_ratio"}),
    "vm.dirty_background_ratio": frozenset({"vm.dirty_background_bytes"}),
    "vm.dirty_background_bytes": frozenset({"vm.dirty_background_ratio"}),
    "read_ahead_sectors": frozenset({"read_ahead_kb"}),
} | {
    name: frozenset({"read_ahead_kb"})  # newer kernels recompute it
    for name in ("max_sectors_kb", "rotational", "add_random", "iostats", "write_cache", "io_poll")
}


def setting_of(fact: str) -> str:
    """The factor that a fact observes: `scheduler` for `device.scheduler`; "" if there is none."""
    scope, _, name = fact.partition(".")
    return name if scope in ("device", "host") and name in DIMENSIONS else ""


def causes(fact: str, dimensions: Iterable[str]) -> list[str]:
    """Labels of the compared factors that cause this fact."""
    name = setting_of(fact)
    return [label_of(cause) for cause in dimensions if name in EFFECTS.get(cause, ()) or _made_by(cause, fact)]


def _made_by(cause: str, fact: str) -> bool:
    """A different layout is a different device or file system, so all their facts follow from it, but not the
    controller, which is there before. More targets at once are more drives, so facts that identify drives follow from
    it.
    """
    if fact.startswith("device.controller."):
        return False
    if cause in (AT_ONCE, HOSTS_AT_ONCE):
        return fact in IDENTITY
    return cause.partition(".")[0] == "layout" and fact.startswith(("device", "file_system"))
