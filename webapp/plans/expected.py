"""Estimates the bytes that a plan will write from earlier results. Pure. The bound is `bytes_written.written_most`.

A trial with a run time is expected to write as fast as the fastest earlier result of its kind: random or sequential,
the same share of reads, direct or not, the same layout; preferably with the same block size, else with any. Results of
the same target are preferred, else results of other targets with the same drive model. Results of several targets at
once are ignored, because only their sum is known. An amount or a file size is exact, as in the bound, and a rebuild
counts as in the bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from webapp.plans.bytes_written import rebuilt_in, written_by
from webapp.plans.engines import engine_of, name_of
from webapp.plans.estimate import Estimate
from webapp.plans.expand import Expansion
from webapp.plans.streams import own_point
from webapp.plans.values import Value

Point = Mapping[str, Value]
Kind = tuple[Value, ...]


@dataclass(frozen=True)
class Speeds:
    """The fastest measured writes in bytes/s, by kind and block size; None: any block size."""

    by_kind: Mapping[tuple[Kind, Value], float] = field(default_factory=dict)

    @staticmethod
    def of(measured: Iterable[tuple[Point, float]]) -> "Speeds":
        """From points that write and their bytes/s."""
        found: dict[tuple[Kind, Value], float] = {}
        for point, rate in measured:
            for key in ((kind_of(point), point.get("block_size")), (kind_of(point), None)):
                found[key] = max(found.get(key, 0.0), rate)
        return Speeds(found)

    def at(self, point: Point) -> float | None:
        kind = kind_of(point)
        return self.by_kind.get((kind, point.get("block_size")), self.by_kind.get((kind, None)))


@dataclass(frozen=True)
class Earlier:
    """Rates of one target, and of others with the same drive model."""

    own: Speeds = Speeds()
    model: Speeds = Speeds()


@dataclass(frozen=True)
class Expected:
    """Expected bytes written to a target; `by_model`: some rates come from other drives of the same model."""

    bytes: int
    by_model: bool


def written_in_total(cost: Estimate, expected: Mapping[str, Expected]) -> int | None:
    """Expected bytes on all targets; None if nothing is known about one of them."""
    if cost.open_ended - expected.keys():
        return None
    return sum(expected[target].bytes if target in expected else most for target, most in cost.written_most.items())


def written_expected(
    expansion: Expansion, written_before: Mapping[str, int], earlier: Mapping[str, Earlier]
) -> dict[str, Expected]:
    """Expected bytes by target id, with those before measurements, if the bound is not exact and all timed trials have
    earlier results."""
    found: dict[str, Expected] = {}
    unknown: set[str] = set()
    exact = dict(written_before)
    for trial, count, stream in ((each, n, stream) for each, n in expansion.distinct for stream in each.streams):
        target, work = stream.target_id, stream.workload
        if not work.writes:
            continue
        known = earlier.get(target, Earlier())
        if work.replaces_member:
            exact[target] = exact.get(target, 0) + count * rebuilt_in(trial, expansion)
            continue
        if work.moved_bytes is not None:
            exact[target] = exact.get(target, 0) + count * written_by(work)
            continue
        point = own_point(trial.point, stream.name) if stream.name else trial.point
        own, of_model = known.own.at(point), known.model.at(point)
        rate = of_model if own is None else own
        if rate is None:
            unknown.add(target)
            continue
        written = min(written_by(work), work.load_bytes + round(work.time_s * rate))
        before = found.get(target, Expected(0, by_model=False))
        found[target] = Expected(before.bytes + count * written, before.by_model or own is None)
    return {
        target: Expected(told.bytes + exact.get(target, 0), told.by_model)
        for target, told in found.items()
        if target not in unknown
    }


def kind_of(point: Point) -> Kind:
    """What decides the speed besides the block size. `layout` exists only if the plan names one."""
    return (name_of(point), *engine_of(point).kind(point), point.get("layout"))
