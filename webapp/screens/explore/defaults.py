"""The default query of a comparison: the metric of the engine, a factor for x, one for series, one chart per level of
the engine's `CHART_BY`, and one fixed level for every other factor that varies inside a chart. Targets that ran the
same points are compared with each other; otherwise one target is shown. If different numbers of targets were used at
once, this number is x. A sweep of layouts has its number of drives or chunk size as x. If only names vary, such as
copy methods, they are the series."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from webapp.analysis.dimensions import LABEL, MATCHED, NUMBERS, others_of, varying_parts
from webapp.hosts.selectors import parted
from webapp.plans.engines import engine_of
from webapp.plans.engines.base import PlanEngine
from webapp.plans.factors import (
    AT_ONCE,
    CHANGE,
    FACTORS,
    HOSTS_AT_ONCE,
    OTHERS,
    STREAM,
    STREAMS,
    STREAMS_ON,
    FactorKind,
    Value,
    stream_and_factor,
)
from webapp.plans.points import follow_from
from webapp.results.metrics import IOPS, default_metric
from webapp.results.reading.filter import NOT_SET, Level
from webapp.results.reading.points import TargetPoint
from webapp.screens import points

Point = Mapping[str, Value]
TARGET, HOST = "target", "host"


@dataclass(frozen=True)
class Chosen:
    x: str
    series: str  # "" if nothing else varies
    panel: str  # "" for one chart
    fixed: dict[str, Level]
    target: str = ""  # the only target shown, if targets ran different points
    metric: str = ""  # "" for IOPS
    or_absent: frozenset[str] = frozenset()  # of `fixed`: factors that may also be missing
    tables: tuple[str, ...] = ()  # of an import, if only these are shown


def choose_for(measured: Sequence[TargetPoint]) -> Chosen:
    """The default for these results: the metric of their engine, power if some have no I/O, and axes."""
    if not all(engine_of(each.point).WORKLOAD.does_io for each in measured):
        return replace(_choose_axes(measured), metric="power")
    metric = default_metric(each.point for each in measured)
    return replace(_choose_axes(measured), metric="" if metric is IOPS else metric.key)


def questions_of(measured: Sequence[TargetPoint]) -> list[Chosen]:
    """A comparison for each factor with names that varies, settings first: all its levels, matched over targets and all
    other factors. Empty for comparisons that have axes of their own: streams, changes, scaling, layouts and labels."""
    everything = [each.point for each in measured]
    names = [name for name in points.varying(everything) if name in FACTORS]
    if not names or {STREAMS, CHANGE, AT_ONCE, HOSTS_AT_ONCE, "layout"}.intersection(names):
        return []
    if len({each.label for each in measured}) > 1 or any(stream_and_factor(name)[0] for name in names):
        return []
    engine, default = engine_of(everything[0]), choose_for(measured)
    panel = engine.CHART_BY if engine.CHART_BY in names else ""
    compared: list[str] = []
    for name in sorted(names, key=lambda name: _series_rank(name, engine)):
        follows = any(name in follow_from(cause, everything) for cause in compared)
        if not FACTORS[name].numeric and name != panel and not follows:
            compared.append(name)
    return [Chosen(MATCHED, name, panel, {}, metric=default.metric) for name in compared]


def _choose_axes(measured: Sequence[TargetPoint]) -> Chosen:
    """If there are several labels, they are the series."""
    if len({each.label for each in measured if each.label}) > 1:
        return _choose_labels(measured)
    by_target: dict[str, list[Point]] = {}
    for each in measured:
        by_target.setdefault(each.target_name, []).append(each.point)
    return choose_targets(by_target)


def _choose_labels(measured: Sequence[TargetPoint]) -> Chosen:
    by_label: dict[str, list[Point]] = {}
    for each in measured:
        by_label.setdefault(each.label, []).append(each.point)
    everything = [each.point for each in measured]
    if together := _together(everything):
        return replace(_scaling(everything, together, several_hosts=True), series=LABEL)
    most = max((by_label[label] for label in sorted(by_label)), key=len)
    chosen = choose(most)
    held = _fixed([chosen.series], chosen.panel, most) if chosen.series else {}
    return replace(chosen, series=LABEL, fixed=chosen.fixed | held)


def choose_targets(by_target: Mapping[str, Sequence[Point]]) -> Chosen:
    """The default for the points of each target (`host/target`, or several at once)."""
    everything = [point for found in by_target.values() for point in found]
    if together := _together(everything):
        hosts = {parted(name)[0] for name in by_target}
        return _scaling(everything, together, several_hosts=len(hosts) > 1 and together == AT_ONCE)
    target = max(sorted(by_target), key=lambda name: len(by_target[name]))
    chosen = choose(by_target[target])
    if len(by_target) == 1:
        return _of_layouts(by_target[target]) or _as_series(chosen, by_target[target])
    alike = {name for name in by_target if _set_of(by_target[name]) == _set_of(by_target[target])}
    if len(alike) < len(by_target):
        return replace(_as_series(chosen, by_target[target]), target=target)
    if not chosen.series:
        return replace(chosen, series=TARGET)
    return replace(chosen, series=TARGET, fixed=chosen.fixed | _fixed([chosen.series], chosen.panel, by_target[target]))


def _as_series(chosen: Chosen, all_points: Sequence[Point]) -> Chosen:
    """If only names vary, they are the series: with the names as x, there would be one series and no ratio."""
    if chosen.series or chosen.x not in points.varying(all_points) or FACTORS[chosen.x].numeric:
        return chosen
    return replace(chosen, x=_constant(all_points), series=chosen.x)


def _constant(all_points: Sequence[Point]) -> str:
    """A numeric factor that all points have, preferably the block size."""
    same = [name for name, factor in FACTORS.items() if factor.numeric and all(name in point for point in all_points)]
    return "block_size" if "block_size" in same or not same else same[0]


def _together(all_points: Sequence[Point]) -> str:
    """The factor of targets or hosts at once that varies, or ""."""
    return next((name for name in (AT_ONCE, HOSTS_AT_ONCE) if name in points.varying(all_points)), "")


def _scaling(all_points: Sequence[Point], together: str, *, several_hosts: bool) -> Chosen:
    chosen = choose([{name: level for name, level in point.items() if name != together} for point in all_points])
    lines = [name for name in (chosen.x, chosen.series) if name in points.varying(all_points)]
    series = HOST if several_hosts else (lines or [""])[0]
    held = _fixed([name for name in lines if name != series], chosen.panel, all_points)
    return replace(chosen, x=together, series=series, fixed=chosen.fixed | held)


def _of_layouts(all_points: Sequence[Point]) -> Chosen | None:
    """If layouts differ only in a number and perhaps in a name, such as the RAID level, these are x and series."""
    lines = {str(point.get("layout") or "") for point in all_points}
    parts = varying_parts(lines)
    numbers, names = [name for name in parts if name in NUMBERS], [name for name in parts if name not in NUMBERS]
    if len(numbers) != 1 or len(names) > 1 or len(set(map(others_of, lines))) > 1:
        return None
    chosen = choose([{name: level for name, level in point.items() if name != "layout"} for point in all_points])
    others = [name for name in (chosen.x, chosen.series) if name in points.varying(all_points)]
    series = (names or others or [""])[0]
    held = _fixed([name for name in others if name != series], chosen.panel, all_points)
    return replace(chosen, x=numbers[0], series=series, fixed=chosen.fixed | held)


def _set_of(all_points: Sequence[Point]) -> set[str]:
    return {repr(sorted(point.items())) for point in all_points}


def choose(all_points: Sequence[Point]) -> Chosen:
    names = [name for name in points.varying(all_points) if name in FACTORS]
    engine = engine_of(all_points[0] if all_points else {})
    chart_by = engine.CHART_BY
    if STREAMS in names:
        return _streams(names, all_points)
    if CHANGE in names:
        return _changes([name for name in names if name != CHANGE], chart_by, all_points)
    x = _best_x([name for name in names if _varies_inside(name, chart_by, all_points)] or names, all_points)
    series = _best_series([name for name in names if name != x], engine)
    rest = [name for name in names if name not in (x, series)]
    panel = chart_by if chart_by in rest else ""
    return Chosen(x, series, panel, _fixed([name for name in rest if name != panel], panel, all_points))


def _streams(names: Sequence[str], all_points: Sequence[Point]) -> Chosen:
    """A chart for each stream; alone and beside others are the series. The level of another stream is a numeric x."""
    numeric = [name for name in names if FACTORS[name].numeric]
    named = [name for name in numeric if stream_and_factor(name)[0]]
    x = _best_x(named or numeric, all_points) if numeric else _constant(all_points)
    series = STREAMS_ON if STREAMS_ON in names else OTHERS if OTHERS in names else STREAMS
    return Chosen(x, series, STREAM if STREAM in names else "", {})


def _changes(names: Sequence[str], chart_by: str, all_points: Sequence[Point]) -> Chosen:
    """Changes from a base are the series. The changed factors follow from them, so they are not fixed."""
    crossed = [name for name in names if name not in follow_from(CHANGE, all_points)]
    panel = chart_by if chart_by in crossed else ""
    numeric = [name for name in crossed if FACTORS[name].numeric]
    x = _best_x(numeric, all_points) if numeric else _constant(all_points)
    return Chosen(x, CHANGE, panel, _fixed([name for name in crossed if name not in (x, panel)], panel, all_points))


def _best_x(names: Sequence[str], all_points: Sequence[Point]) -> str:
    """The numeric factor with the most levels; another factor only if no numeric factor varies."""
    numeric = [name for name in names if FACTORS[name].numeric]
    levels = {name: len({repr(point.get(name)) for point in all_points}) for name in names}
    return max(numeric or names, key=lambda name: levels[name], default="block_size")


def _best_series(names: Sequence[str], engine: PlanEngine) -> str:
    return min(names, key=lambda name: _series_rank(name, engine), default="")


def _series_rank(name: str, engine: PlanEngine) -> tuple[bool, bool, bool, bool]:
    """In order of preference: a setting, the engine's `SERIES_BY`, other names, numbers, its `CHART_BY`."""
    factor = FACTORS[name]
    return name == engine.CHART_BY, factor.kind is not FactorKind.SETTING, name != engine.SERIES_BY, factor.numeric


def _fixed(names: Sequence[str], panel: str, all_points: Sequence[Point]) -> dict[str, Level]:
    """For each factor that still varies inside a chart, the most frequent level."""
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
