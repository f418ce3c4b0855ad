"""Properties of products from the observed configurations of their results, and those that may cause a difference."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.dimensions import LABELS, VOLATILE, label_of_fact, setting_of
from webapp.analysis.equals import FACTS_OF_LABELS, TABLE
from webapp.bench.products import Kind, Product
from webapp.core.formatting import bytes_binary, bytes_decimal
from webapp.plans.factors import FACTORS
from webapp.results.reading.rows import ResultRow

# Properties of products, from the observed configurations of their results.

# Properties with several values in one cell, such as targets, kernels and schedulers: the mean covers all of them.

KERNEL, FIRMWARE, SCHEDULER = "kernel.release", "device.firmware", "device.scheduler"
_OF: Mapping[str, Callable[[ResultRow], str]] = {
    "drive models": lambda row: row.model,
    "layouts": lambda row: row.layout,
    "targets": lambda row: row.target_name,
    "kernels": lambda row: row.facts.get(KERNEL, ""),
    "firmware versions": lambda row: row.facts.get(FIRMWARE, ""),
    "schedulers": lambda row: row.facts.get(SCHEDULER, ""),
    "tools": lambda row: row.tool_and_version,
    "published tables": lambda row: row.facts.get(TABLE, ""),
    "tests of the tool": lambda row: row.test,
}


def pooled(rows: Sequence[ResultRow]) -> str:
    """`2 targets, 3 kernels`; "" if there is one of each. Configurations only if nothing else explains them: of imports
    their labels, `2 values of fill level`."""
    counts = list(_several(rows))
    configurations = {identity(row) for row in rows}
    if not counts and len(configurations) > 1:
        counts = list(_labels(rows)) or [f"{len(configurations)} configurations"]
    return ", ".join(counts)


def _labels(rows: Sequence[ResultRow]) -> Iterator[str]:
    if all(row.imported for row in rows):
        for name in sorted({name for row in rows for name in row.facts}):
            count = len({row.facts.get(name) for row in rows})
            if count > 1:
                yield f"{count} values of {name}"


def identity(row: ResultRow) -> tuple[Hashable, ...]:
    """The digest of the configuration and the stream in it, or the labels of an import."""
    return (row.configuration, row.stream) if row.configuration else tuple(sorted(row.facts.items()))


def _several(rows: Iterable[ResultRow]) -> Iterator[str]:
    distinct = list({(*identity(row), row.target_name, row.tool_and_version, row.test): row for row in rows}.values())
    for words, of in _OF.items():
        count = len({of(row) for row in distinct})
        if count > 1:
            yield f"{count} {words}"


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
_NAMES = frozenset({"target", "folder", "device", "device.stable_id"}) | VOLATILE

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
    return tuple(specification for specification in made if any(specification.values))


def differing(known: Sequence[Facts]) -> tuple[Specification, ...]:
    """Only what differs between products, hardware first."""
    names = sorted({name for facts in known for name in facts} - _NAMES - {MODEL}, key=_order)
    made = [
        Specification(label_of_fact(name), "values", tuple(facts.get(name, ()) for facts in known)) for name in names
    ]
    return tuple(specification for specification in made if specification.differs)


def facts_of(rows: Iterable[ResultRow]) -> Facts:
    """Name -> values over all configurations."""
    texts_by_name: dict[str, set[str]] = {}
    for row in {(*identity(row), row.model, row.host, row.tool_and_version): row for row in rows}.values():
        for name, text in (*_named(row), (HOST, row.host), (MODEL, row.model), (TOOL, row.tool_and_version)):
            if text and (name, text) != UNKNOWN_STATE:
                texts_by_name.setdefault(name, set()).add(_text(name, text))
    return {name: tuple(sorted(texts)) for name, texts in texts_by_name.items()}


def _named(row: ResultRow) -> Iterator[tuple[str, str]]:
    """Facts, or the labels of an import by the names of facts. A scheduler that an import states is a factor."""
    scheduler = str(row.point.get("scheduler") or "")
    if row.imported and scheduler:
        yield SCHEDULER, scheduler
    for name, text in row.facts.items():
        yield FACTS_OF_LABELS.get(name.lower(), name) if row.imported else name, text


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


_HARDWARE = frozenset({Kind.MODEL, Kind.SERIAL, Kind.TARGET, Kind.CONTROLLER})
_ALSO = {"cpu.model": "CPU", KERNEL: "kernel", SCHEDULER: "scheduler", TOOL: "tool"}
# Of one host. Its scheduler may be a factor of the plan, and is then part of the workload.
_OF_A_HOST = {KERNEL: "kernels", TOOL: "tools or versions"}


def confounded(names: Mapping[Product, str], facts: Sequence[Facts]) -> str:
    """`Measured in different hosts: …`, or that the hosts may differ if one is unknown; "" if hosts are compared.

    If all were measured in the same hosts, what else differs, unless runs, configurations or imports are compared.
    """
    measured = [(product, known) for product, known in zip(names, facts, strict=True) if known]
    hosts = [known.get(HOST, ()) for _, known in measured]
    if all(product.kind is Kind.HOST for product, _ in measured):
        return ""
    if len(set(hosts)) < 2:
        different = _different(_OF_A_HOST, measured) if all(product.kind in _HARDWARE for product in names) else []
        words = "A difference may come from them instead of the product."
        return f"Measured with different {' and '.join(different)}. {words}" if different else ""
    where = "; ".join(
        f"{names[product]}: {', '.join(each) or 'unknown'}" for (product, _), each in zip(measured, hosts, strict=True)
    )
    also = _different(_ALSO, measured)
    more = f" These differ too: {', '.join(also)}." if also else ""
    place = "Measured in different hosts" if len(set(hosts) - {()}) > 1 else "The hosts may differ"
    return f"{place} ({where}). A difference may come from the host instead of the product.{more}"


def _different(named: Mapping[str, str], measured: Sequence[tuple[Product, Facts]]) -> list[str]:
    """The words for the facts of which several values are known."""
    known = {words: {facts[name] for _, facts in measured if facts.get(name)} for name, words in named.items()}
    return [words for words, values in known.items() if len(values) > 1]
