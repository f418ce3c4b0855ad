"""What a comparison shows before anybody has chosen: the factor worth an axis, the one worth a line each,
a chart for each pattern, and one level of whatever else varies inside a chart: like is compared with like.
Targets that ran the same points are held against each other; of targets that did not, one is shown. Where more and
more targets were used at once, that is x: the sums against what one alone gives, over whichever targets they are of."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from webapp.compare.dimensions import LABEL
from webapp.compare.reading import Spot
from webapp.hosts.names import parted
from webapp.plans.factors import AT_ONCE, FACTORS, FactorKind, Value
from webapp.results.filters import NOT_SET, Level
from webapp.screens import points

Point = Mapping[str, Value]
PANEL = "pattern"
TARGET, HOST = "target", "host"


@dataclass(frozen=True)
class Chosen:
    x: str
    series: str  # "" where nothing else varies
    panel: str  # "" for one chart
    fixed: dict[str, Level]
    target: str = ""  # the one target shown, where others must not be mixed with it


def choose_for(spots: Sequence[Spot]) -> Chosen:
    """The choice for what was measured. Several labels are compared before anything else."""
    if len({spot.label for spot in spots if spot.label}) > 1:
        return _choose_labels(spots)
    by_target: dict[str, list[Point]] = {}
    for spot in spots:
        by_target.setdefault(spot.target, []).append(spot.point)
    return choose_places(by_target)


def _choose_labels(spots: Sequence[Spot]) -> Chosen:
    by_label: dict[str, list[Point]] = {}
    for spot in spots:
        by_label.setdefault(spot.label, []).append(spot.point)
    everything = [spot.point for spot in spots]
    if AT_ONCE in points.varying(everything):
        return replace(_scaling(everything, several_hosts=True), series=LABEL)
    most = max((by_label[label] for label in sorted(by_label)), key=len)
    chosen = choose(most)
    held = _fixed([chosen.series], chosen.panel, most) if chosen.series else {}
    return replace(chosen, series=LABEL, fixed=chosen.fixed | held)


def choose_places(by_target: Mapping[str, Sequence[Point]]) -> Chosen:
    """The choice for the points of each target (`host/target`, or several at once)."""
    everything = [point for found in by_target.values() for point in found]
    if AT_ONCE in points.varying(everything):
        return _scaling(everything, several_hosts=len({parted(name)[0] for name in by_target}) > 1)
    target = max(sorted(by_target), key=lambda name: len(by_target[name]))
    chosen = choose(by_target[target])
    if len(by_target) == 1:
        return chosen
    alike = {name for name in by_target if _set_of(by_target[name]) == _set_of(by_target[target])}
    if len(alike) < len(by_target):
        return replace(chosen, target=target)
    if not chosen.series:
        return replace(chosen, series=TARGET)
    return replace(chosen, series=TARGET, fixed=chosen.fixed | _fixed([chosen.series], chosen.panel, by_target[target]))


def _scaling(all_points: Sequence[Point], *, several_hosts: bool) -> Chosen:
    chosen = choose([{name: level for name, level in point.items() if name != AT_ONCE} for point in all_points])
    lines = [name for name in (chosen.x, chosen.series) if name in points.varying(all_points)]
    series = HOST if several_hosts else (lines or [""])[0]
    held = _fixed([name for name in lines if name != series], chosen.panel, all_points)
    return replace(chosen, x=AT_ONCE, series=series, fixed=chosen.fixed | held)


def _set_of(all_points: Sequence[Point]) -> set[str]:
    return {repr(sorted(point.items())) for point in all_points}


def choose(all_points: Sequence[Point]) -> Chosen:
    names = [name for name in points.varying(all_points) if name in FACTORS]
    x = _best_x([name for name in names if _varies_inside(name, PANEL, all_points)] or names, all_points)
    series = _best_series([name for name in names if name != x])
    rest = [name for name in names if name not in (x, series)]
    panel = PANEL if PANEL in rest else ""
    return Chosen(x, series, panel, _fixed([name for name in rest if name != panel], panel, all_points))


def _best_x(names: Sequence[str], all_points: Sequence[Point]) -> str:
    """The number with the most levels; a name only where no number varies."""
    numeric = [name for name in names if FACTORS[name].numeric]
    levels = {name: len({repr(point.get(name)) for point in all_points}) for name in names}
    return max(numeric or names, key=lambda name: levels[name], default="block_size")


def _best_series(names: Sequence[str]) -> str:
    """A setting before the engine before other names; a number last. The pattern only if there is nothing else."""

    def rank(name: str) -> tuple[bool, bool, bool, bool]:
        factor = FACTORS[name]
        return name == PANEL, factor.kind is not FactorKind.SETTING, name != "ioengine", factor.numeric

    return min(names, key=rank, default="")


def _fixed(names: Sequence[str], panel: str, all_points: Sequence[Point]) -> dict[str, Level]:
    """One by one, for what still varies inside a chart, the level that the most points have."""
    fixed: dict[str, Level] = {}
    left = list(all_points)
    for name in names:
        if not _varies_inside(name, panel, left):
            continue
        count = Counter(repr(point.get(name, NOT_SET)) for point in left)
        ordered = sorted(left, key=lambda point: points.sort_key(point.get(name, NOT_SET.value)))
        fixed[name] = max(ordered, key=lambda point: count[repr(point.get(name, NOT_SET))]).get(name, NOT_SET)
        left = [point for point in left if point.get(name, NOT_SET) == fixed[name]]
    return fixed


def _varies_inside(name: str, panel: str, all_points: Sequence[Point]) -> bool:
    seen: dict[str, set[str]] = {}
    for point in all_points:
        seen.setdefault(repr(point.get(panel)), set()).add(repr(point.get(name)))
    return any(len(levels) > 1 for levels in seen.values())
