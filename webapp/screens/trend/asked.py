"""The address of a trend: `plan=…&target=host/slug&metric=…&direction=…&factor.block_size=4k`.

A choice that no longer fits is dropped, so changing one choice never ends in an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict

from webapp.hosts.models import Target
from webapp.hosts.selectors import hosts_called
from webapp.plans.engines import engine_of
from webapp.plans.models import Plan
from webapp.plans.points import varying
from webapp.results.metrics import METRICS, Metric, default_metric
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET, write_level
from webapp.runs.models import Trial
from webapp.screens import points as words
from webapp.screens.choices import Choice, Group, Option, options_of
from webapp.trends.run_values import History, ended_runs
from worker.recipes import ENGINES


@dataclass(frozen=True)
class Chosen:
    """The points and the direction ("" for all) of the trend, and the controls to change them."""

    keys: frozenset[str]
    direction: str
    choices: tuple[Choice, ...]


def plan_and_target(query: QueryDict) -> tuple[Plan | None, Target | None]:
    """None for one that is missing or unknown."""
    plan = Plan.objects.filter(slug=query.get("plan", "")).first()
    host, _, slug = query.get("target", "").partition("/")
    target = Target.objects.select_related("host").filter(host__in=hosts_called([host]), slug=slug)
    return plan, target.order_by("-in_policy").first()


def metrics_of(plan: Plan, target: Target) -> tuple[list[Metric], Metric]:
    """The metrics of the newest run's engines, and the default one."""
    newest = ended_runs(plan, target, limit=1)
    trials = Trial.objects.filter(run__in=newest, target=target).order_by("point_key").distinct("point_key")
    points = list(trials.values_list("point", flat=True))
    workloads = {engine_of(point).WORKLOAD for point in points}
    own = {metric.name for workload in workloads for metric in ENGINES[workload].METRICS}
    return [metric for metric in METRICS.values() if metric.column or metric.key in own], default_metric(points)


def chosen_metric(query: QueryDict, offered: list[Metric], default: Metric) -> Metric:
    return next((metric for metric in offered if metric.key == query.get("metric")), default)


def choose(query: QueryDict, history: History, offered: list[Metric], metric: Metric) -> Chosen:
    cells = {cell for one in history.runs for cell in one.cells}
    points = {key: history.points[key] for key, _ in cells}
    names = varying(points.values())
    levels: dict[str, str] = {}
    kept = points
    for name in names:
        text = query.get(f"{FACTOR_PREFIX}{name}", "")
        left = {key: point for key, point in kept.items() if text and _text(point, name) == text}
        if left:
            kept, levels[name] = left, text
    directions = sorted({direction for key, direction in cells if key in kept})
    asked = query.get("direction", "")
    direction = asked if asked in directions else ""
    metrics = options_of([(one.key, one.label) for one in offered], metric.key)
    choices = (
        Choice("id-metric", "metric", "Metric", (Group("", metrics),)),
        *(_factor(name, points, levels.get(name, "")) for name in names),
        *([_directions(directions, direction)] if len(directions) > 1 else []),
    )
    return Chosen(frozenset(kept), direction, choices)


def _text(point: Point, name: str) -> str:
    """A level as it is written in addresses."""
    return write_level(name, point[name]) if name in point else NOT_SET.value


def _factor(name: str, points: Mapping[str, Point], chosen: str) -> Choice:
    found = {_text(point, name): point.get(name) for point in points.values()}
    ordered = sorted(found.items(), key=lambda item: words.sort_key(item[1]))
    options = tuple(
        Option(text, words.level(name, value) if text != NOT_SET.value else text, text == chosen)
        for text, value in ordered
    )
    key = f"{FACTOR_PREFIX}{name}"
    return Choice(f"id-{key}", key, words.label(name), (Group("", options),), "all")


def _directions(directions: list[str], chosen: str) -> Choice:
    options = options_of([(one, one) for one in directions], chosen)
    return Choice("id-direction", "direction", "Direction", (Group("", options),), "all")


def cell_address(point: Point, direction: str, names: tuple[str, ...]) -> dict[str, str]:
    """The parameters that select one cell."""
    return {f"{FACTOR_PREFIX}{name}": _text(point, name) for name in names} | {"direction": direction}
