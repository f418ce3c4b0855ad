"""The address of an acceptance test: `baseline=import=16&candidate=import=1&candidate.factor.read_ahead_sectors=8192&
ignore=ioengine&tolerance.bytes_per_s=5&single_values=1`.

A side is a filter of results, and levels that are chosen of it. Choices that no longer fit are dropped.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from webapp.plans.factors import FACTORS
from webapp.results.reading.rows import ResultRow
from webapp.screens.trend.baseline_form import PREFIX
from webapp.trends.models import Baseline
from webapp.trends.two_sides import TARGET, UNSTATED, Side, at_levels, read_side

SIDES = {"baseline": "Baseline", "candidate": "Candidate"}


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


_IMPORT, _RUN = re.compile(r"import=([0-9]{1,9})", re.ASCII), re.compile(r"run=([0-9]{1,9})", re.ASCII)


def imported_in(side: AskedSide) -> int | None:
    """The number of the import that is all of the side."""
    match = _IMPORT.fullmatch(side.source)
    return int(match[1]) if match else None


def run_in(side: AskedSide) -> int | None:
    """The number of the run that is all of the side, apart from a chosen target."""
    match = _RUN.fullmatch(side.source)
    return int(match[1]) if match and set(side.levels) <= {TARGET} else None


def find_side(asked: AskedSide) -> FoundSide:
    """Raises Refusal."""
    found = read_side(asked.name, asked.source)
    kept, side = at_levels(found, asked.levels)
    return FoundSide(asked, tuple(found.rows), kept, side)


def address_of(baseline: Baseline) -> str:
    """The address of the acceptance test whose baseline is this import."""
    assert baseline.imported is not None
    tolerances = [(key, f"{percent:.15g}") for key, percent in baseline.tolerances.items()]
    side = AskedSide("baseline", f"import={baseline.imported.number}", baseline.levels)
    return write_address([side], baseline.ignored, tolerances, single_values=baseline.single_values)


def write_address(
    sides: Iterable[AskedSide], ignored: Iterable[str], tolerances: Iterable[tuple[str, str]], *, single_values: bool
) -> str:
    """The address that `read_address` reads."""
    pairs = []
    for side in sides:
        pairs.append((side.name, side.source))
        pairs += [(f"{side.name}.{name}", text) for name, text in side.levels.items()]
    pairs += [("ignore", name) for name in ignored]
    pairs += [(f"{PREFIX}{key}", text) for key, text in tolerances if text]
    return urlencode([*pairs, *([("single_values", "1")] if single_values else [])])
