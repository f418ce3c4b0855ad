"""The products inside one import: its drives, each layout of a drive that has several, or else its layouts."""

from collections import defaultdict
from collections.abc import Iterable

from webapp.results.reading.rows import ResultRow


def part_names(labels: Iterable[tuple[str, str]]) -> list[str]:
    """`labels`: the drive and the layout of each test. A drive without a layout somewhere is one product."""
    layouts: dict[str, set[str]] = defaultdict(set)
    for drive, layout in labels:
        layouts[drive].add(layout)
    return sorted({name for drive, own in layouts.items() for name in _names(drive, own)} - {""})


def _names(drive: str, layouts: set[str]) -> set[str]:
    if not drive:
        return layouts
    return {_name(drive, layout) for layout in layouts} if len(layouts) > 1 and "" not in layouts else {drive}


def is_part(row: ResultRow, part: str) -> bool:
    return part in (row.target, _name(row.model, row.layout))


def _name(drive: str, layout: str) -> str:
    return f"{drive}, {layout}"
