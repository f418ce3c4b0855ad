"""The address of an acceptance test: `baseline=import=16&candidate=import=1&candidate.factor.read_ahead_sectors=8192&
ignore=ioengine&tolerance.bytes_per_s=5&single_values=1`.

A side is a filter of results, and levels that are chosen of it. Choices that no longer fit are dropped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.http import QueryDict

from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, write_level
from webapp.results.reading.rows import ResultRow
from webapp.screens.trend.baseline_form import PREFIX
from webapp.trends.sides import Side, read_side
from webapp.trends.two_sides import UNSTATED, target_of

SIDES = {"baseline": "Baseline", "candidate": "Candidate"}
TARGET, LABEL_PREFIX = "target", "label."


@dataclass(frozen=True)
class AskedSide:
    """`source` is a filter, "" if none is chosen. `levels` are the chosen ones by `target`, `factor.<name>` or, of an
    import, `label.<name>`."""

    name: str
    source: str
    levels: Mapping[str, str]


@dataclass(frozen=True)
class Asked:
    """`typed` has the text of each tolerance by metric."""

    sides: tuple[AskedSide, AskedSide]
    ignored: tuple[str, ...]
    typed: Mapping[str, str]
    single_values: bool


@dataclass(frozen=True)
class FoundSide:
    """`all_rows` are those of the source; `side` has those at the chosen levels that exist."""

    asked: AskedSide
    all_rows: tuple[ResultRow, ...]
    levels: Mapping[str, str]
    side: Side


def read_address(query: QueryDict) -> Asked:
    baseline, candidate = (_side(query, name) for name in SIDES)
    typed = _below(query, PREFIX)
    ignored = tuple(name for name in dict.fromkeys(query.getlist("ignore")) if name in (*FACTORS, UNSTATED))
    return Asked((baseline, candidate), ignored, typed, query.get("single_values") == "1")


def _side(query: QueryDict, name: str) -> AskedSide:
    return AskedSide(name, query.get(name, "").strip(), _below(query, f"{name}."))


def _below(query: QueryDict, prefix: str) -> dict[str, str]:
    """The texts of keys with the prefix, by the rest of the key."""
    return {key.removeprefix(prefix): str(text) for key, text in query.items() if key.startswith(prefix) and text}


def find_side(asked: AskedSide) -> FoundSide:
    """Raises Refusal."""
    found = read_side(asked.name, asked.source)
    kept = {name: text for name, text in asked.levels.items() if text in levels_of(found.rows, name)}
    named = (*found.named, *(name.removeprefix(FACTOR_PREFIX) for name in kept if name.startswith(FACTOR_PREFIX)))
    rows = [row for row in found.rows if all(level_of(row, name) == text for name, text in kept.items())]
    return FoundSide(asked, tuple(found.rows), kept, Side(named, rows))


def levels_of(rows: Iterable[ResultRow], name: str) -> set[str]:
    return {level_of(row, name) for row in rows}


def level_of(row: ResultRow, name: str) -> str:
    """Of `target`, `factor.<name>` or `label.<name>`; "" for a row without this label."""
    if name == TARGET:
        return target_of(row)
    if name.startswith(LABEL_PREFIX):
        return row.facts.get(name.removeprefix(LABEL_PREFIX), "") if row.imported else ""
    factor = name.removeprefix(FACTOR_PREFIX)
    return write_level(factor, row.point[factor]) if factor in row.point and factor in FACTORS else NOT_SET.value
