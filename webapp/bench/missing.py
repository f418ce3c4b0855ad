"""The plan that would measure what a product lacks."""

from collections import Counter
from collections.abc import Iterable, Sequence

from webapp.analysis.dimensions import PART
from webapp.analysis.equals import PREFIX, is_label
from webapp.bench.alike import PLACES
from webapp.bench.matching import Matched
from webapp.bench.products import Kind, Product
from webapp.bench.workloads import RATE, Workload, chart_words
from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINE
from webapp.plans.factors import ALTERNATIVES, CHANGE, FACTORS, STREAM, by_cost
from webapp.plans.values import Value
from webapp.results.reading.rows import TEST, ResultRow

MAX_PARTS = 50
_NO_PLAN = {
    Kind.CONTROLLER: "A plan needs a target, and a controller names none.",
    Kind.LAYOUT: "A plan needs a target, and a layout names none.",
    Kind.CONFIGURATION: "A plan needs a target, and a configuration names none.",
    Kind.IMPORT: "An import holds results from files. A plan cannot add results to it.",
    Kind.RUN: "A plan starts a new run. It cannot add results to this run.",
}
_NOT_ALONE = {
    STREAM: "A stream beside others cannot be planned alone. Start the plan of the other product here.",
    CHANGE: "One change from a base cannot be planned alone. Start the plan of the other product here.",
    PART: "A part of a plan may depend on those before it. Start the plan of the other product here.",
    TEST: "No plan runs this test of another tool.",
    **dict.fromkeys(
        ("size_percent", "offset_percent", "offset_increment_percent", "passes"),
        "A share of the target has another size here. Start the plan of the other product here.",
    ),
    "size_memory": "A multiple of the memory has another size here. Start the plan of the other product here.",
}
Grid = dict[str, tuple[Value, ...]]


def missing(matched: Matched, product: Product) -> list[Workload]:
    """Workloads that another product has and this one lacks, at the places where it has others."""
    lacking: dict[str, Workload] = {}
    places = {matched.workloads[key].place for other, key in matched.placed if other == product}
    if product.kind is Kind.IMPORT:
        places |= {workload.place for workload in matched.workloads.values()}
    for panel in matched.panels_of(RATE):
        for workload in matched.in_panel(panel):
            if (product, workload.key) not in matched.placed and (not workload.place or workload.place in places):
                lacking[workload.key] = workload
    return list(lacking.values())


def why_not_alone(workload: Workload) -> str:
    """The reason why no new plan can measure exactly this workload; "" if a plan can."""
    labels = [name.removeprefix(PREFIX) for name in workload.point if is_label(name)]
    if labels:
        return f"No plan sets {' or '.join(labels)}: an import states it as a label."
    return next((why for name, why in _NOT_ALONE.items() if name in workload.point), "")


def why_no_plan(product: Product, rows: Sequence[ResultRow], usable: Iterable[Target]) -> str:
    """The reason why no plan can measure the product on the usable targets; "" if a plan can."""
    if rows and all(row.reference for row in rows):
        return "A reference is a published table. A plan cannot add results to it."
    if rows and all(row.imported for row in rows):
        return _NO_PLAN[Kind.IMPORT]
    if product.kind in _NO_PLAN:
        return _NO_PLAN[product.kind]
    return "" if target_for(product, rows, usable) else f"{product.value}: no target can be used now."


def target_for(product: Product, rows: Sequence[ResultRow], usable: Iterable[Target]) -> Target | None:
    """The usable target of the product with the most of its results."""
    results = Counter(row.target_name for row in rows)
    return max(
        (target for target in usable if _is_of(product, target)), key=lambda target: results[str(target)], default=None
    )


def _is_of(product: Product, target: Target) -> bool:
    values = {
        Kind.MODEL: target.model, Kind.SERIAL: target.serial, Kind.HOST: target.host.slug, Kind.TARGET: str(target),
    }  # fmt: skip
    return values.get(product.kind) == product.value


def plan_for(workloads: Iterable[Workload], title: str) -> PlanDocument:
    """One part for each full-factorial grid of these workloads. Factors that all parts share are common factors."""
    points = [{name: level for name, level in workload.point.items() if name not in PLACES} for workload in workloads]
    grids = merged([{name: (level,) for name, level in point.items()} for point in points])[:MAX_PARTS]
    texts = [_texts(grid) for grid in grids]
    common = {
        name: text for name, text in texts[0].items() if all(part_texts.get(name) == text for part_texts in texts)
    }
    common.pop("pattern", None)  # every part names it
    parts = [
        Part(name=_name(grid, number), factors={name: text for name, text in part_texts.items() if name not in common})
        for number, (grid, part_texts) in enumerate(zip(grids, texts, strict=True), start=1)
    ]
    caches = any(point.get("drop_caches") for point in points)
    return PlanDocument(title=title, common=common, parts=tuple(parts), drop_caches=caches)


def merged(grids: Sequence[Grid]) -> list[Grid]:
    """Join grids that differ in one factor only, factor by factor, the cheapest to change first."""
    joined = list(grids)
    for name in reversed(by_cost({name for grid in grids for name in grid})):
        if name != ENGINE:
            joined = _joined(joined, name)
    return joined


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
