"""The rows of an acceptance test as a table for files, in stored units."""

from collections.abc import Iterator

from webapp.core.table_files import Column, Kind, Table
from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import write_level
from webapp.screens import points as words
from webapp.trends.judging import LABELS, Row
from webapp.trends.two_sides import TwoSides

_NUMBERS = ("Baseline", "Candidate", "Ratio", "Ratio 95 % CI low", "Ratio 95 % CI high", "Tolerance [%]", "Limit")


def verdict_table(found: TwoSides) -> Table:
    """All factors of the rows are columns; a mean over several cells has no levels."""
    points = [found.places[row.cell[0]].point for row in found.rows if row.cell]
    names = words.in_order({name for point in points for name in point})
    columns = [
        *(Column(heading) for heading in ("Verdict", "Metric", "Unit", "Target", *names, "Direction")),
        *(Column(heading, Kind.NUMBER) for heading in _NUMBERS),
        Column("Single values", Kind.SWITCH),
        Column("Reason"),
    ]
    return Table(columns, _rows(found, names))


def _rows(found: TwoSides, names: list[str]) -> Iterator[tuple[object, ...]]:
    for row in found.rows:
        ratio = row.ratio
        yield (
            "Not measured" if row.not_measured else LABELS[row.outcome], row.metric.label, row.metric.unit,
            *_place(row, found, names), row.baseline, row.value,
            ratio.value if ratio else None, ratio.low if ratio else None, ratio.high if ratio else None,
            row.tolerance, row.limit, row.single_values, row.why or None,
        )  # fmt: skip


def _place(row: Row, found: TwoSides, names: list[str]) -> tuple[str | None, ...]:
    """Target, levels and direction."""
    if row.cell is None:
        return (None, *(None for _ in names), f"mean over {row.cells} cells")
    key, direction = row.cell
    place = found.places[key]
    levels = (_level(name, place.point[name]) if name in place.point else None for name in names)
    return (place.target or None, *levels, direction)


def _level(name: str, value: object) -> str:
    return write_level(name, value) if name in FACTORS else str(value)  # type: ignore[arg-type]  # a point's level
