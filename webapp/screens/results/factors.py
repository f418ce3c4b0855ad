"""Filters on any factor: `?factor.block_size=4k`, the same as in the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import QueryDict

from webapp.plans.factors import FACTORS, Value, ValueRefused
from webapp.results.models import Result
from webapp.screens import points

PREFIX = "factor."


@dataclass(frozen=True)
class Option:
    value: str  # as it stands in the address
    text: str
    chosen: bool


@dataclass(frozen=True)
class FactorFilter:
    """A select of one factor's levels."""

    name: str
    label: str
    options: tuple[Option, ...]


def chosen_levels(query: QueryDict) -> dict[str, Value]:
    """Factor name -> level asked for. What is no factor or no level of it is left out."""
    chosen = {}
    for key, text in query.items():
        factor = FACTORS.get(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
        if factor is None or not isinstance(text, str) or text == "":
            continue
        try:
            chosen[factor.name] = factor.parse(text)
        except ValueRefused:
            continue
    return chosen


def distinct_points(results: QuerySet[Result]) -> list[Mapping[str, Value]]:
    """Every point once that the results stand at."""
    return list(results.order_by("point_key").distinct("point_key").values_list("point", flat=True))


def factor_filters(all_points: Sequence[Mapping[str, Value]], chosen: Mapping[str, Value]) -> tuple[FactorFilter, ...]:
    """A filter for each factor that varies in the results, and for each that is already chosen."""
    names = dict.fromkeys([*points.varying(all_points), *chosen])
    return tuple(_filter(name, all_points, chosen) for name in names if name in FACTORS)


def _filter(name: str, all_points: Sequence[Mapping[str, Value]], chosen: Mapping[str, Value]) -> FactorFilter:
    factor = FACTORS[name]
    levels = {repr(point[name]): point[name] for point in all_points if name in point}
    options = [
        Option(factor.write(level), factor.format(level), name in chosen and chosen[name] == level)
        for level in sorted(levels.values(), key=points.sort_key)
    ]
    return FactorFilter(name=name, label=factor.label, options=tuple(options))
