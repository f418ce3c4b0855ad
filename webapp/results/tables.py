"""Results of a run as a table for a terminal, and as plain data for scripts."""

from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any

from webapp.core.statistics import mean_of
from webapp.plans.factors import FACTORS
from webapp.plans.points import varying
from webapp.results.metrics import METRICS
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.runs.models import Run, Trial

SHOWN_METRICS = ("iops", "bytes_per_s", "latency_mean", "latency_p99")


def point_table(run: Run) -> list[list[str]]:
    """A row of headings, then one row for each point, target and direction: geometric mean ± standard
    deviation, and n.

    Only factors that vary in the run are shown.
    """
    results = read_rows(Result.objects.filter(run=run, invalid=False).order_by("trial__index"))
    names = varying(result.point for result in results)
    groups: dict[tuple[str, str, str], list[ResultRow]] = {}
    for result in results:
        groups.setdefault((result.target_name, result.point_key, result.direction), []).append(result)
    headings = ["target", *map(_label, names), "direction", "n", *(METRICS[name].label for name in SHOWN_METRICS)]
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], _order(item[1][0].point, names), item[0][2]))
    return [headings, *(_row(target, direction, group, names) for (target, _, direction), group in ordered)]


def _row(target: str, direction: str, results: Sequence[ResultRow], names: Sequence[str]) -> list[str]:
    levels = [_level(name, results[0].point.get(name)) for name in names]
    return [target, *levels, direction, str(len(results)), *(_mean_and_spread(name, results) for name in SHOWN_METRICS)]


def _mean_and_spread(name: str, results: Sequence[ResultRow]) -> str:
    metric = METRICS[name]
    values = [value for result in results if (value := metric.of(result)) is not None]
    if not values:
        return metric.format(None)
    if len(values) == 1:
        return metric.format(values[0])
    return f"{metric.format(mean_of(values))} ± {metric.format(stdev(values))}"


def _label(name: str) -> str:
    return FACTORS[name].label if name in FACTORS else name


def _level(name: str, value: Any) -> str:
    if value is None:
        return "–"
    return FACTORS[name].format(value) if name in FACTORS else str(value)


def _order(point: Mapping[str, object], names: Sequence[str]) -> list[tuple[float, str]]:
    """Numbers by size, texts in alphabetical order."""
    values = [point.get(name) for name in names]
    return [(float(value), "") if isinstance(value, int | float) else (0.0, str(value)) for value in values]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines of equal columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def run_as_data(run: Run) -> dict[str, Any]:
    """A run with its trials and their results, for scripts; units are in the names."""
    trials = run.trials.select_related("target__host").prefetch_related("further").order_by("index")
    results: dict[int, list[ResultRow]] = {}
    for row in read_rows(Result.objects.filter(run=run).order_by("direction")):
        results.setdefault(row.trial, []).append(row)
    return {
        "run": run.number,
        "plan": str(run.version),
        "state": run.state,
        "reason_code": run.reason_code,
        "reason": run.reason,
        "trials": [_trial_as_data(trial, results.get(trial.number, ())) for trial in trials],
    }


def _trial_as_data(trial: Trial, results: Sequence[ResultRow]) -> dict[str, Any]:
    return {
        "id": str(trial.pk),
        "number": trial.number,
        "repeat": trial.repeat,
        "part": trial.part,
        "target": trial.place,
        "point": trial.point,
        "state": trial.state,
        "reason_code": trial.reason_code,
        "reason": trial.reason,
        "results": [
            {
                "direction": result.direction,
                **{metric.column: metric.of(result) for metric in METRICS.values() if metric.column},
                "metrics": result.metrics,
            }
            for result in results
        ],
    }
