"""The choices above the results table and the comparison: run, host, target, direction and every factor that varies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.http import QueryDict

from webapp.hosts.models import Host, Target
from webapp.plans.factors import FACTORS, Value
from webapp.results.filters import FACTOR_PREFIX, ResultFilter
from webapp.results.models import Result
from webapp.results.selectors import filtered
from webapp.runs.models import Run
from webapp.screens import points

RUNS_OFFERED = 200
Point = Mapping[str, Value]


@dataclass(frozen=True)
class Option:
    value: str  # as it stands in the address
    text: str
    chosen: bool


@dataclass(frozen=True)
class Choice:
    """A select; its first option, which means all, is written by the template."""

    name: str
    label: str
    options: tuple[Option, ...]

    @property
    def chosen_text(self) -> str:
        return ", ".join(option.text for option in self.options if option.chosen)


def pairs_of(query: QueryDict, *without: str) -> list[tuple[str, str]]:
    """The pairs of an address, but for those that are no filter."""
    return [(key, str(value)) for key, values in query.lists() if key not in without for value in values]


def distinct_points(results: QuerySet[Result]) -> list[Point]:
    """Every point once that the results stand at."""
    return list(results.order_by("point_key").distinct("point_key").values_list("point", flat=True))


def points_of(asked: ResultFilter) -> list[Point]:
    """Points of the chosen runs, hosts, targets and directions, whatever levels are chosen."""
    return distinct_points(filtered(replace(asked, factors={})))


def points_by_target(asked: ResultFilter) -> dict[str, list[Point]]:
    """The same for each target (`host/target`) on its own."""
    keys = ("target_id", "point_key")
    rows = filtered(asked).order_by(*keys).distinct(*keys).values_list("host__slug", "target__slug", "point")
    found: dict[str, list[Point]] = {}
    for host, target, point in rows:
        found.setdefault(f"{host}/{target}", []).append(point)
    return found


def place_choices(asked: ResultFilter) -> list[Choice]:
    runs = Run.objects.select_related("version__plan").order_by("-number")[:RUNS_OFFERED]
    titles = [(str(run.number), f"Run {run.number} · {run.version.plan.title}") for run in runs]
    hosts = [(host.slug, host.slug) for host in Host.objects.all()]
    targets = dict.fromkeys((str(target), str(target)) for target in Target.objects.select_related("host"))
    return [
        _choice("run", "Run", titles, [str(number) for number in asked.runs]),
        _choice("host", "Host", hosts, asked.hosts),
        _choice("target", "Target", targets, asked.targets),
        _choice("direction", "Direction", [("read", "read"), ("write", "write")], asked.directions),
    ]


def _choice(name: str, label: str, pairs: Iterable[tuple[str, str]], chosen: Sequence[str]) -> Choice:
    return Choice(name, label, tuple(Option(value, text, value in chosen) for value, text in pairs))


def factor_choices(all_points: Sequence[Point], asked: ResultFilter) -> list[Choice]:
    """One for each factor that varies in the points, and for each that a level is chosen of."""
    names = dict.fromkeys([*points.varying(all_points), *asked.factors])
    return [_factor_choice(name, all_points, asked.factors.get(name, ())) for name in names if name in FACTORS]


def _factor_choice(name: str, all_points: Sequence[Point], chosen: Sequence[Value]) -> Choice:
    factor = FACTORS[name]
    levels = {repr(point[name]): point[name] for point in all_points if name in point}
    options = [
        Option(factor.write(level), factor.format(level), level in chosen)
        for level in sorted(levels.values(), key=points.sort_key)
    ]
    return Choice(f"{FACTOR_PREFIX}{name}", factor.label, tuple(options))
