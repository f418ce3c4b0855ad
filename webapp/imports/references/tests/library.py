"""The reference library as it is read, and searches in it."""

from collections.abc import Iterable

from webapp.imports.references.reading import Entry, Reference, references
from worker.contract.items import Direction

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LIBRARY: dict[str, Reference] = {reference.slug: reference for reference in references()}


def entries_of(slug: str, path: str | None = None, **labels: str) -> list[Entry]:
    wanted = {name.replace("_", " "): text for name, text in labels.items()}.items()
    return [one for one in LIBRARY[slug].entries if path in (None, one.path) and wanted <= dict(one.labels).items()]


def entry_of(entries: Iterable[Entry], direction: Direction | None = None, repeat: int = 1, **factors: object) -> Entry:
    (found,) = [
        one
        for one in entries
        if one.measurement.direction is direction
        and one.measurement.repeat == repeat
        and factors.items() <= one.measurement.factors.items()
    ]
    return found


def rate(entry: Entry) -> float:
    assert entry.measurement.bytes_per_s is not None
    return entry.measurement.bytes_per_s


def values_of(entries: Iterable[Entry], unit: float) -> list[float]:
    return [round(rate(one) / unit, 6) for one in entries]
