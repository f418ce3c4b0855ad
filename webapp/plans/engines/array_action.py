"""The engine array action: its factors, and the workload of a point."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import msgspec

from webapp.plans.engines.base import RUNTIME, Levels
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Value
from worker.contract.array_action import ArrayAction, ArrayActionWorkload
from worker.recipes import array_action as recipe

WORKLOAD = ArrayActionWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "action"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = ""
CHART_BY = ""
SERIES_BY = "action"
DIRECTIONS_BY = ""
NAMED_BY = {"action": "array {}"}
PHRASES = {"action": "array {}", "runtime": "{} each"}

FACTORS = (
    Factor(
        "action",
        "Array action",
        Choice(tuple(ArrayAction)),
        example="rebuild",
        help="check reads all members of the layout's md array, rebuild replaces the last member; the runtime limits "
        "both",
    ),
    replace(RUNTIME, default=60),
)


def silent(_point: Mapping[str, object]) -> tuple[str, ...]:
    return ()


def workload(point: Mapping[str, Value], *, seed: int) -> ArrayActionWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {"action": point["action"], "runtime_s": point["runtime"], "seed": seed}
    return msgspec.convert(fields, ArrayActionWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("action"),)
