"""Properties of products, from the observed configurations of their results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.pooled import FIRMWARE, KERNEL, SCHEDULER, TABLE, identity
from webapp.compare.fact_labels import LABELS, label_of_fact
from webapp.compare.facts import IDENTITY, VOLATILE, setting_of
from webapp.core.formatting import bytes_binary, bytes_decimal
from webapp.plans.factors import FACTORS
from webapp.results.reading.rows import LAYOUT_LABEL, ResultRow

UNKNOWN_STATE = ("drive_state", "unknown")  # as unknown as a drive state that nobody reads
MODEL, TOOL, HOST = "model", "tool", "host"
# label, word for several values, and the name of the fact
HEADER = (
    ("Host", "hosts", HOST),
    ("Model", "models", MODEL),
    ("Firmware", "versions", FIRMWARE),
    ("Link", "links", "device.transport"),
    ("Controller", "controllers", "device.controller.model"),
    ("Cache policy", "cache policies", "device.write_cache"),
    ("Kernel", "kernels", KERNEL),
    ("Scheduler", "schedulers", SCHEDULER),
)
# Names of devices and targets say nothing about the product.
_NAMES = frozenset({"target", "folder", "device", "device.stable_id", "file_system.mount"}) | VOLATILE

# Labels of imports that are facts of our own runs.
_OF_LABELS = {
    "firmware": FIRMWARE, "kernel": KERNEL, "link": "device.transport", "interface": "device.transport",
    "cache policy": "device.write_cache", "write cache": "device.write_cache", "file system": "file_system",
    "mount options": "file_system.options", "operating system": "distribution", "processor": "cpu.model",
}  # fmt: skip

# Linux, Documentation/ABI/stable/sysfs-block: in bytes, except the one in KiB.
_SIZES_OF_IO = {
    "device.logical_block_size": 1, "device.physical_block_size": 1, "device.minimum_io_size": 1,
    "device.optimal_io_size": 1, "device.max_hw_sectors_kb": 1024,
}  # fmt: skip

Values = tuple[str, ...]  # sorted; empty if unknown
Facts = Mapping[str, Values]  # by name


@dataclass(frozen=True)
class Specification:
    """One property, with its values for each product in order."""

    label: str
    several: str  # word for several values
    values: tuple[Values, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1

    @property
    def is_partly_known(self) -> bool:
        """No two values differ: the other products state none, as imports beside a host."""
        return not all(self.values) and len({*filter(None, self.values)}) == 1

    def repeats(self, names: Iterable[str]) -> bool:
        """`Model` below the names of drive models, `Host` below those of hosts."""
        return self.values == tuple((name,) for name in names)


def header(known: Sequence[Facts]) -> tuple[Specification, ...]:
    """Without properties that are unknown for all products."""
    made = (
        Specification(label, several, tuple(facts.get(name, ()) for facts in known)) for label, several, name in HEADER
    )
    return tuple(one for one in made if any(one.values))


def differing(known: Sequence[Facts]) -> tuple[Specification, ...]:
    """Only what differs between products, hardware first."""
    names = sorted({name for facts in known for name in facts} - _NAMES - {MODEL}, key=_order)
    made = [
        Specification(label_of_fact(name), "values", tuple(facts.get(name, ()) for facts in known)) for name in names
    ]
    return tuple(one for one in made if one.differs)


def facts_of(rows: Iterable[ResultRow]) -> Facts:
    """Name -> values over all configurations."""
    found: dict[str, set[str]] = {}
    for row in {(*identity(row), row.model, row.host, row.tool_and_version): row for row in rows}.values():
        for name, text in (*_named(row), (HOST, row.host), (MODEL, row.model), (TOOL, row.tool_and_version)):
            if text and (name, text) != UNKNOWN_STATE:
                found.setdefault(name, set()).add(_text(name, text))
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def _named(row: ResultRow) -> Iterator[tuple[str, str]]:
    """Facts, or the labels of an import by the names of facts. A scheduler that an import states is a factor."""
    scheduler = str(row.point.get("scheduler") or "")
    if row.imported and scheduler:
        yield SCHEDULER, scheduler
    for name, text in row.facts.items():
        yield _OF_LABELS.get(name.lower(), name) if row.imported else name, text


def is_specification(name: str) -> bool:
    """Whether a label of an import describes the product or the source, and not the workload."""
    return _OF_LABELS.get(name.lower(), name) in LABELS or name in IDENTITY or name in (LAYOUT_LABEL, TABLE)


def _text(name: str, text: str) -> str:
    """A fact with its unit: that of the setting which it observes, or bytes."""
    if setting := FACTORS.get(setting_of(name)):
        return setting.format(text)
    if not text.isdecimal():
        return text
    if name in _SIZES_OF_IO:
        return bytes_binary(int(text) * _SIZES_OF_IO[name])
    if not name.endswith("bytes"):
        return text
    return bytes_binary(int(text)) if name.startswith("memory") else bytes_decimal(int(text))


def _order(name: str) -> tuple[int, str]:
    listed = list(LABELS)
    return (listed.index(name) if name in listed else len(listed), name)
