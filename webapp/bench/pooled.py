"""Properties with several values in one cell, such as targets, kernels and schedulers: the mean covers all of them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from webapp.results.reading.rows import ResultRow

TABLE = "table"  # label of a reference: the caption in its source
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
    found = list(_several(rows))
    configurations = {identity(row) for row in rows}
    if not found and len(configurations) > 1:
        found = list(_labels(rows)) or [f"{len(configurations)} configurations"]
    return ", ".join(found)


def _labels(rows: Sequence[ResultRow]) -> Iterator[str]:
    if all(row.imported for row in rows):
        for name in sorted({name for row in rows for name in row.facts}):
            count = len({row.facts.get(name) for row in rows})
            if count > 1:
                yield f"{count} values of {name}"


def identity(row: ResultRow) -> tuple[Hashable, ...]:
    """The digest of the configuration, or the labels of an import."""
    return (row.configuration,) if row.configuration else tuple(sorted(row.facts.items()))


def _several(rows: Iterable[ResultRow]) -> Iterator[str]:
    distinct = list({(*identity(row), row.target_name, row.tool_and_version, row.test): row for row in rows}.values())
    for words, of in _OF.items():
        count = len({of(row) for row in distinct})
        if count > 1:
            yield f"{count} {words}"
