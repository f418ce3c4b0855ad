"""A place of a comparison: one level on x in one chart. Distributions and time lines are of one place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webapp.compare.dimensions import Level, Row, known_dimension, label_of
from webapp.compare.grouping import Grouped
from webapp.compare.query import CompareQuery, CompareRefused
from webapp.compare.selectors import Selected, baseline_of


@dataclass(frozen=True)
class PlaceRows:
    """What stands at one place: the results of each series, the baseline named."""

    key: str
    text: str
    series: Mapping[Level, tuple[Row, ...]]
    baseline: str  # key of a series

    @property
    def ids(self) -> list[int]:
        return [id_ for rows in self.series.values() for row in rows for id_ in (row.id, *row.further)]


def places(selected: Selected) -> dict[str, str]:
    """Key -> text of every place, in the order of charts and levels."""
    return {_key(panel, x): _text(panel, x, selected.query) for panel, x in _all(selected.grouped)}


def _all(grouped: Grouped) -> Iterator[tuple[Level, Level]]:
    there = {(panel, x) for panel, _, x in grouped.cells}
    for panel in grouped.panels:
        yield from ((panel, x) for x in grouped.x if (panel.key, x.key) in there)


def _key(panel: Level, x: Level) -> str:
    return f"{panel.key}|{x.key}"


def _text(panel: Level, x: Level, query: CompareQuery) -> str:
    level = x.text if not known_dimension(query.x).numeric else f"{label_of(query.x)} {x.text}"
    return f"{panel.text} · {level}" if panel.text else level


def place_of(selected: Selected, key: str = "") -> PlaceRows:
    """The place of this key; else the last of the first chart that holds the most series.

    Raises CompareRefused where there is no such place.
    """
    grouped, known = selected.grouped, list(_all(selected.grouped))
    chosen = next(((panel, x) for panel, x in known if _key(panel, x) == key), None)
    if key and chosen is None:
        raise CompareRefused("compare_place_unknown", f"spot={key}: nothing was measured there. Choose another place.")
    panel, x = chosen or _fullest(grouped, known)
    rows = {series: grouped.cells.get((panel.key, series.key, x.key)) for series in grouped.series}
    return PlaceRows(
        _key(panel, x),
        _text(panel, x, selected.query),
        {series: tuple(found) for series, found in rows.items() if found},
        baseline_of(selected.query, grouped).key,
    )


def _fullest(grouped: Grouped, known: list[tuple[Level, Level]]) -> tuple[Level, Level]:
    def count(place: tuple[Level, Level]) -> int:
        return sum((place[0].key, series.key, place[1].key) in grouped.cells for series in grouped.series)

    first = known[0][0]
    most = max(count(place) for place in known if place[0] == first)
    return [place for place in known if place[0] == first and count(place) == most][-1]
