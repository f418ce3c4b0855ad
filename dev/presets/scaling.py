"""Scales a plan down, so that it takes seconds on small drives. Pure.

- Sizes and amounts are divided, as `webapp.plans.smaller_sizes` does.
- Times are cut to a maximum; rounds and holds of stop rules to their minimum.
- One repeat, and at most `points` points of each part. The first, last and middle levels of each factor are chosen
  first, and every level that `points` points can show. Rules of the part select the chosen points.
- Layouts with more drives than the pool has are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.factors import CHANGE, FACTORS
from webapp.plans.grids import part_grid
from webapp.plans.points import Point, layout_of
from webapp.plans.smaller_sizes import with_smaller_sizes
from webapp.plans.values import Value
from worker.contract.stopping import Confidence, SteadyRounds
from worker.recipes.stop_rules import parse

MIB = 1024**2
TIMES = ("runtime", "ramp", "runtime_min")
STOP_RULE_S = 12  # maximum time of a trial with a stop rule, whose minimum is 5 s
ROUND, HOLD = "snia 1s", "settled 10s"


@dataclass(frozen=True)
class Scale:
    seconds: int = 1
    size_bytes: int = 64 * MIB
    points: int = 6
    drives: int = 4


def scaled(document: PlanDocument, scale: Scale) -> PlanDocument:
    smaller = with_smaller_sizes(document, scale.size_bytes)
    stops = any("stop" in factors for factors in (smaller.common, *(part.factors for part in smaller.parts)))
    seconds = STOP_RULE_S if stops else scale.seconds
    parts = tuple(msgspec.structs.replace(part, factors=_shorter(part.factors, seconds)) for part in smaller.parts)
    shorter = msgspec.structs.replace(smaller, common=_shorter(smaller.common, seconds), parts=parts, repeats=1)
    chosen = tuple(msgspec.structs.replace(part, rules=_rules(shorter, part, scale)) for part in parts)
    return msgspec.structs.replace(shorter, parts=chosen)


def _shorter(factors: Mapping[str, str], seconds: int) -> dict[str, str]:
    return {name: _cut(name, text, seconds) for name, text in factors.items()}


def _cut(name: str, text: str, seconds: int) -> str:
    if name == "stop":
        return ", ".join(dict.fromkeys(map(_stop_rule, text.split(","))))
    if name not in TIMES:
        return text
    values = FACTORS[name].values
    cut = (min(int(value or 0), seconds) for value in levels.parse(FACTORS[name], text))
    return ", ".join(dict.fromkeys(map(values.write, cut)))


def _stop_rule(text: str) -> str:
    match parse(text):
        case Confidence():
            return text.strip()
        case SteadyRounds():
            return ROUND
    return HOLD


# ---- points


def _rules(document: PlanDocument, part: Part, scale: Scale) -> tuple[str, ...]:
    """The part's rules, with those that select the chosen points instead of its own."""
    grid = part_grid(document, part)
    fitting = [point for point in grid.points if _drives(point) <= scale.drives]
    if len(grid.points) <= scale.points and len(fitting) == len(grid.points):
        return part.rules
    varying = {name: values for name, values in grid.levels.items() if len(values) > 1}
    kept = tuple(rule for rule in part.rules if not rule.startswith(("except", "only when")))
    chosen = _chosen(fitting, varying, scale.points)
    return (*kept, *(f"only when {'; '.join(_conditions(point, varying))}" for point in chosen))


def _drives(point: Point) -> int:
    layout = layout_of(point)
    return layout.drives if layout else 1


def _conditions(point: Point, varying: Mapping[str, object]) -> Iterator[str]:
    for name in varying:
        if name in point and name != CHANGE:
            yield f"{name}={FACTORS[name].values.write(point[name])}"


def _chosen(points: Sequence[Point], varying: Mapping[str, Sequence[Value]], count: int) -> list[Point]:
    """Repeatedly the point with the most levels that are not shown yet; of equal ones, that with the outermost levels."""
    places = {name: _outermost_first(values) for name, values in varying.items()}
    shown: set[tuple[str, Value]] = set()
    left, found = list(points), list[Point]()

    def order(point: Point) -> tuple[int, int]:
        present = [(name, point[name]) for name in varying if name in point]
        return -len(set(present) - shown), sum(places[name][value] for name, value in present)

    while left and len(found) < count:
        best = min(left, key=order)
        left.remove(best)
        found.append(best)
        shown |= {(name, best[name]) for name in varying if name in best}
    return found


def _outermost_first(values: Sequence[Value]) -> dict[Value, int]:
    """Each level's place in the order first, last, middle, then the others."""
    count = len(values)
    places = dict.fromkeys([0, count - 1, count // 2, *range(count)])
    return {values[place]: rank for rank, place in enumerate(places)}
