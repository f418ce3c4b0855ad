"""The engine idle: its only factor, and the workload of a point."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import msgspec

from webapp.plans.engines.base import RUNTIME, Levels
from webapp.plans.values import Value
from worker.contract.idle import IdleWorkload
from worker.recipes import idle as recipe

WORKLOAD = IdleWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "runtime"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = ""
CHART_BY = ""
SERIES_BY = "runtime"
DIRECTIONS_BY = ""
NAMED_BY = {"runtime": "idle for {}"}
PHRASES = {"runtime": "{} each"}

FACTORS = (replace(RUNTIME, default=60, help="without I/O"),)


def silent(_point: Mapping[str, object]) -> tuple[str, ...]:
    return ()


def workload(point: Mapping[str, Value], *, seed: int) -> IdleWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    return msgspec.convert({"runtime_s": point["runtime"], "seed": seed}, IdleWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(_point: Mapping[str, Value]) -> tuple[Value, ...]:
    return ()
