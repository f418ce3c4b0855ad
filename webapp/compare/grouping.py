"""Rows -> cells: which results stand at the same place of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.compare.dimensions import Level, Row, known_dimension, label_of
from webapp.compare.query import CompareQuery
from webapp.results.filters import NOT_SET

Place = tuple[str, str, str]  # keys of panel, series and x


@dataclass(frozen=True)
class Grouped:
    """Cells by place, and the levels of each axis in the order they are shown."""

    cells: dict[Place, list[Row]]
    panels: tuple[Level, ...]
    series: tuple[Level, ...]
    x: tuple[Level, ...]


def group(rows: Sequence[Row], query: CompareQuery) -> Grouped:
    panels: dict[str, tuple[Level, ...]] = {}
    series: dict[str, tuple[Level, ...]] = {}
    x: dict[str, Level] = {}
    cells: dict[Place, list[Row]] = {}
    by_x, by_series = known_dimension(query.x), [known_dimension(name) for name in query.series]
    by_panel = [known_dimension(name) for name in query.panels]
    for row in rows:
        panel = tuple([each.level(row) for each in by_panel])
        levels = tuple([each.level(row) for each in by_series])
        at = by_x.level(row)
        place = _key(panel), _key(levels), at.key
        if place in cells:
            cells[place].append(row)
        else:
            cells[place] = [row]
            panels.setdefault(place[0], panel)
            series.setdefault(place[1], levels)
            x.setdefault(at.key, at)
    ordered = tuple(sorted(x.values(), key=lambda level: level.order))
    return Grouped(cells, _charts(panels), _named(series, query), ordered)


def _key(levels: Sequence[Level]) -> str:
    return ",".join([level.key for level in levels])


def _charts(panels: dict[str, tuple[Level, ...]]) -> tuple[Level, ...]:
    ordered = sorted(panels.items(), key=lambda item: [level.order for level in item[1]])
    return tuple(Level(key, ", ".join(level.text for level in levels), None) for key, levels in ordered)


def _named(series: dict[str, tuple[Level, ...]], query: CompareQuery) -> tuple[Level, ...]:
    """In the order of their levels; numbers alone say too little, so they come with their factor's name."""
    ordered = sorted(series.items(), key=lambda item: [level.order for level in item[1]])
    return tuple(Level(key, _name(levels, query.series) or "all", None) for key, levels in ordered)


def _name(levels: Sequence[Level], names: Sequence[str]) -> str:
    pairs = zip(names, levels, strict=True)
    return ", ".join(level.text if _speaks(level) else f"{label_of(name)} {level.text}" for name, level in pairs)


def _speaks(level: Level) -> bool:
    """A level that says by itself what it is: `io_uring`, but not `32` or `on`."""
    return level.number is None and level.key not in ("", NOT_SET.value, "on", "off")
