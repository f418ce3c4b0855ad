"""Group rows into the cells of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from webapp.compare.comparison import Level
from webapp.compare.dimensions import MATCHED, MATCHED_DIMENSION, MatchedDimension, known_dimension, label_of
from webapp.compare.query import CompareQuery
from webapp.plans.factors import FACTORS
from webapp.plans.varying import varying
from webapp.results.reading.filter import NOT_SET
from webapp.results.reading.rows import ResultRow

CellKey = tuple[str, str, str]  # keys of panel, series and x
# Levels of several factors: “none is faster than kyber” has no clear subject.
_UNCLEAR = frozenset({"", NOT_SET.value, "on", "off", "none"})


@dataclass(frozen=True)
class Grouped:
    """The rows of each cell, and the levels of each axis in display order."""

    cells: dict[CellKey, list[ResultRow]]
    panels: tuple[Level, ...]
    series: tuple[Level, ...]
    x: tuple[Level, ...]


def group(rows: Sequence[ResultRow], query: CompareQuery) -> Grouped:
    panels: dict[str, tuple[Level, ...]] = {}
    series: dict[str, tuple[Level, ...]] = {}
    x: dict[str, Level] = {}
    cells: dict[CellKey, list[ResultRow]] = {}
    by_x = _matched(rows, query) if query.x == MATCHED else known_dimension(query.x)
    by_series = [known_dimension(name) for name in query.series]
    by_panel = [known_dimension(name) for name in query.panels]
    for row in rows:
        panel = tuple([each.level(row) for each in by_panel])
        levels = tuple([each.level(row) for each in by_series])
        at = by_x.level(row)
        key = _key(panel), _key(levels), at.key
        if key in cells:
            cells[key].append(row)
        else:
            cells[key] = [row]
            panels.setdefault(key[0], panel)
            series.setdefault(key[1], levels)
            x.setdefault(at.key, at)
    ordered = tuple(sorted(x.values(), key=lambda level: level.order))
    return Grouped(cells, _charts(panels, query), _named(series, query), ordered)


def _matched(rows: Sequence[ResultRow], query: CompareQuery) -> MatchedDimension:
    """The varying factors that neither series nor charts name, and the target if there are several."""
    used = {*query.series, *query.panels}
    points = {row.point_key: row.point for row in rows}
    names = tuple(name for name in varying(points.values()) if name in FACTORS and name not in used)
    by_target = not used & {"target", "host", "model", "serial"} and len({row.target_name for row in rows}) > 1
    return replace(MATCHED_DIMENSION, names=names, by_target=by_target)


def _key(levels: Sequence[Level]) -> str:
    """As in an address: `io_uring,none`. A comma inside a level is escaped, so that no two keys are equal by chance."""
    if len(levels) == 1:
        return levels[0].key
    return ",".join([level.key.replace("\\", "\\\\").replace(",", "\\,") for level in levels])


def _charts(panels: dict[str, tuple[Level, ...]], query: CompareQuery) -> tuple[Level, ...]:
    """In the order of their levels. `4 KiB` is clear in the title of a chart, `32` is not."""
    ordered = sorted(panels.items(), key=lambda item: [level.order for level in item[1]])
    names = {key: ", ".join(map(clear_text, query.panels, levels)) for key, levels in ordered}
    return tuple(Level(key, name, None) for key, name in names.items())


def _named(series: dict[str, tuple[Level, ...]], query: CompareQuery) -> tuple[Level, ...]:
    """In the order of their levels. A number is preceded by the label of its factor, also with a unit."""
    ordered = sorted(series.items(), key=lambda item: [level.order for level in item[1]])
    return tuple(Level(key, _name(levels, query.series) or "all", None) for key, levels in ordered)


def _name(levels: Sequence[Level], names: Sequence[str]) -> str:
    pairs = zip(names, levels, strict=True)
    return ", ".join(
        level.text if level.number is None and _is_word(level) else f"{label_of(name)} {level.text}"
        for name, level in pairs
    )


def clear_text(name: str, level: Level) -> str:
    """The text of a level, which a reader understands without the axis: `4 KiB`, but `Queue depth 32`."""
    return level.text if is_clear(level) else f"{label_of(name)} {level.text}"


def is_clear(level: Level) -> bool:
    """Whether its text is a word, or a number with a unit."""
    return _is_word(level) if level.number is None else any(map(str.isalpha, level.text))


def _is_word(level: Level) -> bool:
    """Whether a level is clear without the label of its factor: `io_uring`, but not `on` or `none`."""
    return level.key not in _UNCLEAR
