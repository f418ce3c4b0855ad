"""Labels of imports that are part of the workload: those that vary among tests with equal factors at one drive.

The fill level of a published table is such a label. Without it, the values of all fill levels would be one mean. Labels
that describe the product, such as its firmware, are not part of the workload: cells with several of them say so.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping

from webapp.bench.specifications import is_specification
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(\D*)", re.ASCII)
PREFIX = "label:"  # in points and addresses, because a label may have the name of a factor


def varying_labels(rows: Iterable[ResultRow]) -> frozenset[str]:
    """Their names. A label that only some of the tests state varies too."""
    tests: dict[object, set[tuple[tuple[str, str], ...]]] = {}
    for row in rows:
        if row.imported:
            place = (row.imported, row.point_key, row.direction, row.test, drive_of(row))
            tests.setdefault(place, set()).add(tuple(sorted(_labels(row).items())))
    return frozenset(name for stated in tests.values() for name in _varying([dict(each) for each in stated]))


def labels_in(row: ResultRow, names: Collection[str]) -> dict[str, Value]:
    """The labels of a result with these names, as parts of its point."""
    if not row.imported or not names:
        return {}
    return {f"{PREFIX}{name}": text for name, text in _labels(row).items() if name in names}


def points_with_labels(rows: Iterable[ResultRow], names: Collection[str]) -> list[Point]:
    """Each point once, with the labels that are part of it."""
    found: dict[object, Point] = {}
    for row in rows:
        stated = labels_in(row, names)
        found[row.point_key, *stated.items()] = {**row.point, **stated}
    return list(found.values())


def is_label(name: str) -> bool:
    """Whether this part of a point is a label and not a factor."""
    return name.startswith(PREFIX)


def factor_words(name: str) -> str:
    """The label of a factor; `Fill level` for `label:fill level`."""
    plain = name.removeprefix(PREFIX)
    return FACTORS[name].label if name in FACTORS else plain[:1].upper() + plain[1:]


def level_text(name: str, level: Value) -> str:
    return FACTORS[name].format(level) if name in FACTORS else str(level)


def number_of(level: Value) -> tuple[float, str] | None:
    """The number and the unit of a label: 20 and % of `20 %`. None if it is no number."""
    found = _NUMBER.fullmatch(str(level).strip())
    return (float(found[1]), found[2]) if found else None


def label_order(point: Mapping[str, Value]) -> tuple[object, ...]:
    """Sorts by the numbers of labels, then by their texts."""
    levels = [level for name, level in sorted(point.items()) if is_label(name)]
    return tuple((number_of(level) or (math.inf, ""), str(level)) for level in levels)


def drive_of(row: ResultRow) -> tuple[str, ...]:
    """What the labels of an import say about it. `target_name` may be the name of the test."""
    return row.host, row.model, row.serial, row.layout


def _labels(row: ResultRow) -> dict[str, str]:
    return {name: text for name, text in row.facts.items() if not is_specification(name)}


def _varying(stated: Collection[Mapping[str, str]]) -> set[str]:
    names = {name for each in stated for name in each}
    return {name for name in names if len({each.get(name) for each in stated}) > 1}
