"""Scales a plan down, so that it takes seconds on small drives. Pure.

- Sizes and amounts are divided, as `webapp.plans.sizes` does. Multiples of the memory become such sizes.
  Amounts are cut to 16 MiB.
- Times are cut to a maximum; rounds and holds of stop rules to their minimum. Pauses are divided by 100.
- Pauses of steps before trials take a second.
- One repeat, without rules about rounds, and at most `points` points of each part, which have as many different levels
  as possible; the first, last and middle levels of each factor come first. Rules of the part select these points.
- Layouts with more drives than the pool has are left out. Trials use at most `hosts` hosts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.factors import CHANGE, FACTORS, HOSTS_AT_ONCE
from webapp.plans.grids import part_grid
from webapp.plans.load import LOAD
from webapp.plans.points import Point, layouts_of
from webapp.plans.rules import TRACK
from webapp.plans.sizes import MEMORY, with_smaller_sizes
from webapp.plans.values import Value
from worker.contract.workload import Confidence, SteadyRounds
from worker.recipes.base import parse_stop_rule

MIB = 1024**2
TIMES = ("runtime", "ramp", "runtime_min")
PAUSES, PAUSES_BY = ("thinktime", "thinktime_iotime"), 100
AMOUNT = 16 * MIB  # 32,768 I/Os of 512 B
STOP_RULE_S = 12  # maximum time of a trial with a stop rule, whose minimum is 5 s
ROUND, HOLD = "snia 1s", "settled 10s"


@dataclass(frozen=True)
class Scale:
    seconds: int = 1
    size_bytes: int = 64 * MIB
    points: int = 6
    drives: int = 4
    hosts: int = 1


def scaled(document: PlanDocument, scale: Scale) -> PlanDocument:
    smaller = _in_bytes(with_smaller_sizes(document, scale.size_bytes), scale.size_bytes)
    common = _shorter(smaller.common, scale, {})
    parts = tuple(_short_part(part, scale, smaller.common) for part in smaller.parts)
    shorter = msgspec.structs.replace(smaller, common=common, parts=parts, repeats=1)
    chosen = tuple(msgspec.structs.replace(part, rules=_rules(shorter, part, scale)) for part in parts)
    return msgspec.structs.replace(shorter, parts=chosen)


# ---- sizes and times


def _in_bytes(document: PlanDocument, most_bytes: int) -> PlanDocument:
    """The plan with sizes in bytes instead of multiples of the memory."""
    parts = (msgspec.structs.replace(part, factors=_not_of_memory(part.factors, most_bytes)) for part in document.parts)
    return msgspec.structs.replace(document, common=_not_of_memory(document.common, most_bytes), parts=tuple(parts))


def _not_of_memory(factors: Mapping[str, str], most_bytes: int) -> dict[str, str]:
    if MEMORY not in factors:
        return dict(factors)
    multiples = [int(value or 0) for value in levels.parse(FACTORS[MEMORY], factors[MEMORY])]
    sizes = (most_bytes * one // max(multiples) // MIB for one in multiples)
    return {name: text for name, text in factors.items() if name != MEMORY} | {
        "size": ", ".join(f"{size}M" for size in sizes)
    }


def _short_part(part: Part, scale: Scale, common: Mapping[str, str]) -> Part:
    """Without `zip` rules whose times have become equal, and without rounds."""
    factors = _shorter(part.factors, scale, common)
    names = {name for name in TIMES if factors.get(name) != part.factors.get(name)}
    rules = tuple(rule for rule in part.rules if not (rule.startswith("zip") and any(name in rule for name in names)))
    rules = tuple(rule for rule in rules if not rule.startswith(TRACK))
    before = tuple(re.sub(r"pause\s+\S+", "pause 1s", line) for line in part.before)
    streams = tuple(
        msgspec.structs.replace(stream, factors=_shorter(stream.factors, scale, common) | _load(stream.factors, "50%"))
        for stream in part.streams
    )
    factors |= _load(factors, "50%, max")
    return msgspec.structs.replace(part, factors=factors, rules=rules, before=before, streams=streams)


def _load(factors: Mapping[str, str], shares: str) -> dict[str, str]:
    """Rules may not choose among shares: a share needs its maximum, which is added to the shares of streams."""
    return {LOAD: shares} if LOAD in factors else {}


def _shorter(factors: Mapping[str, str], scale: Scale, common: Mapping[str, str]) -> dict[str, str]:
    """`common`: the common factors, of which a part with its own stop rule needs a longer run time."""
    stops = "stop" in factors
    wanted = {"runtime": common["runtime"], **factors} if stops and "runtime" in common else factors
    seconds = STOP_RULE_S if stops or "stop" in common else scale.seconds
    return {name: _cut(name, text, seconds, scale.hosts) for name, text in wanted.items()}


def _cut(name: str, text: str, seconds: int, hosts: int) -> str:
    if name == "stop":
        return ", ".join(dict.fromkeys(map(_stop_rule, text.split(","))))
    if name not in (*TIMES, *PAUSES, "amount", HOSTS_AT_ONCE):
        return text
    values = FACTORS[name].values
    parsed = [int(value or 0) for value in levels.parse(FACTORS[name], text)]
    most = {"amount": AMOUNT, HOSTS_AT_ONCE: hosts}.get(name, seconds)
    cut = [value // PAUSES_BY if name in PAUSES else min(value, most) for value in parsed]
    return ", ".join(dict.fromkeys(map(values.write, cut)))


def _stop_rule(text: str) -> str:
    match parse_stop_rule(text):
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
    """The most drives of one pool."""
    return max(layout.drives if layout else 1 for layout in layouts_of(point))


def _conditions(point: Point, varying: Mapping[str, object]) -> Iterator[str]:
    for name in varying:
        if name in point and name != CHANGE:
            yield f"{name}={FACTORS[name].values.write(point[name])}"


def _chosen(points: Sequence[Point], varying: Mapping[str, Sequence[Value]], count: int) -> list[Point]:
    """Choose the point with the most levels that no chosen point has; of equal ones, that with the outermost levels."""
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
