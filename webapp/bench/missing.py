"""The plan that would measure what a product lacks."""

from collections.abc import Iterable, Sequence

from webapp.bench.matching import RATE, Matched
from webapp.bench.products import Kind, Product
from webapp.bench.workloads import Workload, chart_words
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINE
from webapp.plans.factors import ALTERNATIVES, CHANGE, FACTORS, by_cost
from webapp.plans.values import Value
from webapp.results.reading.rows import ResultRow

MAX_PARTS = 50
_MEASURABLE = frozenset({Kind.MODEL, Kind.SERIAL, Kind.HOST, Kind.TARGET})
Grid = dict[str, tuple[Value, ...]]


def missing(matched: Matched, product: Product) -> list[Workload]:
    """Workloads that another product has and this one lacks."""
    found: dict[str, Workload] = {}
    for panel in matched.panels_of(RATE):
        for one in matched.in_panel(panel):
            if product not in matched.measured_by(panel, one.key):
                found[one.key] = one
    return list(found.values())


def can_be_planned(product: Product, rows: Sequence[ResultRow]) -> bool:
    """Runs, layouts, configurations and labels of imports have no target."""
    return product.kind in _MEASURABLE and not (rows and all(row.imported for row in rows))


def plan_for(workloads: Iterable[Workload], title: str) -> PlanDocument:
    """One part for each full-factorial grid of these workloads. Factors that all parts share are common factors."""
    points = [one.point for one in workloads]
    grids = merged([{name: (level,) for name, level in point.items()} for point in points])[:MAX_PARTS]
    texts = [_texts(grid) for grid in grids]
    common = {name: text for name, text in texts[0].items() if all(each.get(name) == text for each in texts)}
    common.pop("pattern", None)  # every part names it
    parts = [
        Part(name=_name(grid, number), factors={name: text for name, text in own.items() if name not in common})
        for number, (grid, own) in enumerate(zip(grids, texts, strict=True), start=1)
    ]
    caches = any(point.get("drop_caches") for point in points)
    return PlanDocument(title=title, common=common, parts=tuple(parts), drop_caches=caches)


def merged(grids: Sequence[Grid]) -> list[Grid]:
    """Join grids that differ in one factor only, factor by factor, the cheapest to change first."""
    found = list(grids)
    for name in reversed(by_cost({name for grid in grids for name in grid})):
        if name != ENGINE:
            found = _joined(found, name)
    return found


def _joined(grids: Iterable[Grid], name: str) -> list[Grid]:
    groups: dict[object, list[Grid]] = {}
    for grid in grids:
        rest = frozenset((other, levels) for other, levels in grid.items() if other != name)
        groups.setdefault((rest, name in grid), []).append(grid)
    return [_one(alike, name) for alike in groups.values()]


def _one(alike: Sequence[Grid], name: str) -> Grid:
    if name not in alike[0]:
        return alike[0]
    levels = {level for grid in alike for level in grid[name]}
    return alike[0] | {name: tuple(sorted(levels, key=_order))}


def _order(level: Value) -> tuple[bool, float, str]:
    return (False, float(level), "") if isinstance(level, int | float) else (True, 0.0, str(level))


def _texts(grid: Grid) -> dict[str, str]:
    """In the notation of plans, without defaults. A relative size is left to the target of the new plan."""
    given = {name for name, other in ALTERNATIVES if other in grid}
    return {
        name: ", ".join(FACTORS[name].values.write(level) for level in levels)
        for name, levels in grid.items()
        if name in FACTORS and name not in (*given, CHANGE, "drop_caches") and levels != (FACTORS[name].default,)
    }


def _name(grid: Grid, number: int) -> str:
    patterns = grid.get("pattern", ())
    words = ", ".join(chart_words(str(pattern)) for pattern in patterns)
    return f"{words or 'Part'} {number}"[:100]
