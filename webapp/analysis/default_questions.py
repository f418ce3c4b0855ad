"""The questions of what was measured, for results of runs: what a plan varies, one factor after another.

Each factor has its own question: its levels are the series, compared only between results that are equal in everything
else, over all targets, with nothing filtered away. First changes from a base, settings and layouts, then targets at
once, then other factors with names, then parts of the plan with equal points. Each level of the engine's `CHART_BY`,
such as read and write, has a chart. Axes of load, such as the queue depth, are no question of their own: if nothing
else varies, targets are compared, and the highest value is the answer.

x is the only factor that is left, else everything that is left (`dimensions.MATCHED`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from webapp.analysis.dimensions import LABEL, MATCHED, NUMBERS, PART, PRODUCTS, label_of, others_of, varying_parts
from webapp.analysis.question import MAX_SERIES_FACTORS
from webapp.hosts.selectors import parted
from webapp.plans.engines import engine_of
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
    stream_and_factor,
)
from webapp.plans.load import LOAD, is_load
from webapp.plans.points import follow_from, varying
from webapp.plans.values import Value
from webapp.results.metrics import IOPS, default_metric
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, Level, write_level
from webapp.results.reading.query import TargetPoint
from webapp.results.reading.rows import ResultRow

Point = Mapping[str, Value]
TARGET, HOST, LAYOUT, BLOCK = "target", "host", "layout", "block_size"
MAP_METRICS = ("latency_p95", "latency_p99")  # of a map of two loads
READABLE = 16  # series of axes of load in one chart


@dataclass(frozen=True)
class Chosen:
    """A question, as far as an address states it."""

    x: str
    series: str  # comma-separated; "" if nothing else varies
    panel: str  # "" for one chart
    fixed: Mapping[str, Level]
    metric: str = ""  # "" for IOPS
    or_absent: frozenset[str] = frozenset()  # of `fixed`: factors that may also be missing
    tables: tuple[str, ...] = ()  # of an import, if only these are shown
    about: str = ""  # the factor whose levels are compared; "" for an axis of load, whose highest value is the answer

    @property
    def label(self) -> str:
        return label_of(self.about or self.x)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Of its address, without the results."""
        axes = [("x", self.x), ("series", self.series), ("panel", self.panel), ("metric", self.metric)]
        fixed = [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in self.fixed.items()]
        return [pair for pair in (*axes, *fixed) if pair[1]]


def choose_for(measured: Sequence[TargetPoint], series: Sequence[str] = (), panel: str = "") -> Chosen:
    """The first question, or that of the series and charts that a person has chosen."""
    if not (series or panel):
        return questions_of(measured)[0]
    questions = _Measured(measured, panel)
    chosen = questions.about(*series) if series else (questions.questions() or [questions.load()])[0]
    return replace(chosen, metric=_metric(measured))


def questions_of(measured: Sequence[TargetPoint]) -> list[Chosen]:
    """All of them, the most important first; at least one. `measured` has at least one point."""
    questions, metric = _Measured(measured), _metric(measured)
    factors = [replace(chosen, metric=metric) for chosen in questions.questions()]
    return [*factors, *load_questions(measured)] if questions.is_load else factors


def questions_of_run(rows: Sequence[ResultRow]) -> tuple[Chosen, ...]:
    """Those about the factors that vary among the results of one run; empty for results of several runs or of imports,
    and if no factor varies."""
    if len({row.run for row in rows}) != 1 or rows[0].imported:
        return ()
    places = {(row.target_name, row.label, row.part, row.point_key): row for row in rows}
    measured = [TargetPoint(row.target_name, row.point, row.label, row.part) for row in places.values()]
    return tuple(chosen for chosen in questions_of(measured) if chosen.about)


def load_questions(measured: Sequence[TargetPoint]) -> list[Chosen]:
    """Of the highest values: if block sizes vary, of IOPS and of bandwidth, because each is highest at other sizes. Of
    shares of the load, what the latency is."""
    if load_map := _Measured(measured).load_map():
        return [replace(load_map, metric=metric) for metric in MAP_METRICS]
    chosen = _Measured(measured).load()
    load = replace(chosen, metric="latency_p99" if chosen.x == LOAD else _metric(measured))
    has_both = not load.metric and BLOCK in varying([each.point for each in measured])
    return [load, replace(load, metric="bytes_per_s")] if has_both else [load]


def _metric(measured: Sequence[TargetPoint]) -> str:
    """That of the engine, power if some points have no I/O and their engine has no metric of its own."""
    engines = [engine_of(each.point) for each in measured]
    if not all(engine.WORKLOAD.does_io or IOPS.key != engine.DEFAULT_METRIC for engine in engines):
        return "power"
    metric = default_metric(each.point for each in measured)
    return "" if metric is IOPS else metric.key


class _Measured:
    """The measured points, and what varies among them."""

    def __init__(self, measured: Sequence[TargetPoint], panel: str = "") -> None:
        self._measured, self._points = measured, [each.point for each in measured]
        self._engine = engine_of(self._points[0])
        self._names = [name for name in varying(self._points) if name in FACTORS]
        self._layouts = {str(point.get(LAYOUT) or "") for point in self._points}
        self._panel = panel or (self._engine.CHART_BY if self._engine.CHART_BY in self._names else "")
        self._targets = {each.target_name for each in measured}
        self._several = len(self._targets) > 1 and self._panel not in PRODUCTS

    @property
    def is_load(self) -> bool:
        """Whether only axes of load vary, and targets."""
        return all(chosen.about == TARGET for chosen in self.questions())

    def questions(self) -> list[Chosen]:
        """Of factors; those of targets if no factor has one."""
        together = next((name for name in (AT_ONCE, HOSTS_AT_ONCE) if name in self._names), "")
        if len({point.label for point in self._measured if point.label}) > 1:
            return [self._scaling(together, [LABEL]) if together else self.about(LABEL)]
        if STREAMS in self._names:
            return [] if self.load_map() else [self._streams()]
        if self._parts_are_phases():
            return [self.about(PART)]
        factors = self._factors()
        first = [name for name in factors if _rank(name, self._engine.SERIES_BY) < _WORKLOAD]
        questions = [
            *map(self.about, first),
            *([self._scaling(together, [HOST] if self._several_hosts(together) else [])] if together else []),
            *map(self.about, factors[len(first) :]),
            *([self.about(PART)] if self._parts_are_alike() else []),
        ]
        return questions or ([self.about(TARGET)] if self._several else [])

    def about(self, *series: str) -> Chosen:
        """The levels of `series`, compared over everything else, in a chart for each level of `CHART_BY`."""
        panel = "" if self._panel in series else self._panel
        rest = self._rest({*series, panel})
        over_targets = self._several and PRODUCTS.isdisjoint(series)
        over_parts = PART not in (*series, panel) and self._parts_are_alike()
        if over_targets or over_parts or len(rest) > 1:
            x = MATCHED
        else:
            x = rest[0] if rest else _constant(self._points, {*series, panel})
        return Chosen(x, ",".join(series), panel, {}, about=series[0])

    def _rest(self, used: Collection[str]) -> list[str]:
        """The factors that vary inside the charts and are neither used nor part of a used change or layout."""
        points = [{**point, PART: each.part} for point, each in zip(self._points, self._measured, strict=True)]
        part_of = set[str]().union(*(follow_from(cause, points) for cause in (CHANGE, PART) if cause in used))
        names = [name for name in self._names if name not in used and name not in part_of]
        parts = varying_parts(self._layouts)
        if set(parts) & set(used):
            names = [*(name for name in names if name != LAYOUT), *(name for name in parts if name not in used)]
        return [name for name in names if name not in FACTORS or self._varies_inside(name)]

    def _varies_inside(self, name: str) -> bool:
        """Whether it varies inside a chart."""
        seen: dict[str, set[str]] = {}
        for point in self._points:
            seen.setdefault(repr(point.get(self._panel)), set()).add(repr(point.get(name)))
        return any(len(levels) > 1 for levels in seen.values())

    def _factors(self) -> list[str]:
        """The factors with a question, in order: neither charts, nor axes of load, nor what follows from another."""
        names: list[str] = []
        for name in sorted(self._names, key=lambda name: _rank(name, self._engine.SERIES_BY)):
            follows = any(name in follow_from(cause, self._points) for cause in names if cause in FACTORS)
            if name == LAYOUT:
                names += self._layout_parts()
            elif name != self._panel and not follows and not _is_axis_of_load(name):
                names.append(name)
        return names

    def _layout_parts(self) -> list[str]:
        """The part with names, such as the RAID level, if layouts differ only in it and in numbers; nothing if they
        differ only in one number, such as the drives, which is an axis; else the whole layout."""
        parts = varying_parts(self._layouts)
        names = [name for name in parts if name not in NUMBERS]
        if len(names) > 1 or not parts or len(set(map(others_of, self._layouts))) > 1:
            return [LAYOUT]
        return names or ([] if len(parts) == 1 else [LAYOUT])

    def _parts_are_alike(self) -> bool:
        """Whether several parts have equal points on one target."""
        places = {(each.target_name, repr(sorted(each.point.items())), each.part) for each in self._measured}
        return len({place[:2] for place in places}) < len(places)

    def _parts_are_phases(self) -> bool:
        """Whether parts of the plan are phases of a test, such as iozone's: several factors with names tell them apart,
        each part has one level of each, and the factor with charts alone does not tell them apart."""
        names = [name for name in self._names if not _is_axis_of_load(name)]
        levels = {(each.part, *(repr(each.point.get(name)) for name in names)) for each in self._measured}
        charts = {repr(point.get(self._panel)) for point in self._points}
        parts = {each.part for each in self._measured}
        return "" not in parts and len(names) > 2 and len(levels) == len(parts) > len(charts)

    def _several_hosts(self, together: str) -> bool:
        return together == AT_ONCE and len({parted(name)[0] for name in self._targets}) > 1

    def _scaling(self, together: str, series: list[str]) -> Chosen:
        """x is the number of targets or hosts at once."""
        rest = self._rest({together, self._panel})
        lines = [*series, *rest][:MAX_SERIES_FACTORS]
        fixed = {name: _most_frequent(name, self._points) for name in rest if name not in lines}
        return Chosen(together, ",".join(lines), self._panel, fixed, about=together)

    def _streams(self) -> Chosen:
        """A chart for each stream; alone and beside others are the series. The level of another stream is x."""
        numeric = [name for name in self._names if FACTORS[name].numeric]
        named = [name for name in numeric if stream_and_factor(name)[0]]
        x = _most_levels(named or numeric, self._points) if numeric else _constant(self._points)
        series = STREAMS_ON if STREAMS_ON in self._names else OTHERS if OTHERS in self._names else STREAMS
        return Chosen(x, series, STREAM if STREAM in self._names else "", {}, about=series)

    def load_map(self) -> Chosen | None:
        """The shares of the load of two streams at once: one across and one down, in a chart for each stream."""
        loads = [name for name in self._names if is_load(name) and name != LOAD]
        if len(loads) != 2:
            return None
        together = {STREAMS: _most_frequent(STREAMS, [point for point in self._points if set(loads) <= point.keys()])}
        return Chosen(loads[1], ",".join([*([TARGET] if self._several else []), loads[0]]), STREAM, together)

    def load(self) -> Chosen:
        """Axes of load: shares of the load are x, else the one with the most levels; the others are series, as far as
        one chart can show them."""
        parts = [name for name in varying_parts(self._layouts) if name in NUMBERS] if not self._layout_parts() else []
        axes = [*(name for name in self._rest({self._panel}) if name != LAYOUT), *parts]
        several = [TARGET] if self._several else []
        if not axes:
            x = self._panel if self._panel and not several else _constant(self._points)
            return Chosen(x, ",".join(several), "" if x == self._panel else self._panel, {})
        x = LOAD if LOAD in axes else (parts or [_most_levels(axes, self._points)])[0]
        series = [*several, *(name for name in axes if name != x)]
        lines = prod(len(self._targets) if name == TARGET else _count(name, self._points) for name in series)
        if len(series) > MAX_SERIES_FACTORS or lines > READABLE:
            return Chosen(MATCHED, "", self._panel, {})
        return Chosen(x, ",".join(series), self._panel, {})


_CHANGE, _SETTING, _LAYOUT, _DRIVE, _WORKLOAD = range(5)
_RANKS = {
    FactorKind.CHANGE: _CHANGE,
    FactorKind.SETTING: _SETTING,
    FactorKind.LAYOUT: _LAYOUT,
    FactorKind.DRIVE: _DRIVE,
}


def _rank(name: str, first: str) -> int:
    """The place of a factor's question; `first`: the factor that the engine compares first."""
    return _RANKS.get(FACTORS[name].kind, _WORKLOAD + (name != first)) if name in FACTORS else _LAYOUT


# Numbers of the workload that say how it is done, and not how much: mostly, 0 is "never" and not the least.
_MANNERS = frozenset({
    "fsync_every", "fdatasync", "openfiles", "blockalign", "iodepth_batch", "iodepth_batch_complete_min",
    "iodepth_batch_complete_max", "iodepth_low", "force_async", "sqthread_poll_cpu", "verify_async",
})  # fmt: skip


def _is_axis_of_load(name: str) -> bool:
    """A number of the workload that says how much, such as queue depth, jobs or block size, or of targets at once. A
    number that a setting or a process has is a level like a name."""
    factor = FACTORS[name]
    return factor.numeric and factor.kind not in (FactorKind.SETTING, FactorKind.PROCESS) and name not in _MANNERS


def _count(name: str, all_points: Iterable[Point]) -> int:
    return len({repr(point.get(name)) for point in all_points})


def _most_levels(names: Sequence[str], all_points: Sequence[Point]) -> str:
    return max(names, key=lambda name: _count(name, all_points))


def _constant(all_points: Sequence[Point], used: Collection[str] = ()) -> str:
    """A numeric factor that all points have, preferably the block size."""
    same = [name for name, factor in FACTORS.items() if factor.numeric and all(name in point for point in all_points)]
    free = [name for name in (BLOCK, *same) if name in same and name not in used]
    return free[0] if free else BLOCK


def _most_frequent(name: str, all_points: Sequence[Point]) -> Level:
    levels = {repr(level): level for point in all_points for level in [point.get(name, NOT_SET)]}
    count = Counter(repr(point.get(name, NOT_SET)) for point in all_points)
    return levels[max(sorted(levels), key=lambda key: count[key])]
