"""Simulated pages: a plan is expanded by the product, results get noise, and the product compares them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from dev.truth.noise import MODELS, Trials
from webapp.analysis.answer import Comparison
from webapp.analysis.comparing import Matching, Selected, comparison_of, grouped_for
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.question import CompareQuery
from webapp.bench.matching import Matched, match
from webapp.bench.products import Kind, Product
from webapp.bench.workloads import RATE
from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.expand import PlannedTrial, expand
from webapp.plans.fitness import TargetFacts
from webapp.plans.points import point_key
from webapp.results.metrics import METRICS
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow
from worker.contract.packing import bucket_ns
from worker.contract.workload import TargetKind

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
IOPS, LATENCY_NS, SECONDS = 100_000.0, 250_000.0, 10
ORDERS = 40  # different seeds of the order for each scenario
# The compared factor -> its levels. A scheduler is costly, so its trials stay together; an engine is cheap.
LEVELS = {
    "scheduler": ("none", "mq-deadline", "bfq", "kyber"),
    "ioengine": ("io_uring", "libaio", "psync", "sync"),
}
# Points a page -> the levels of the other factors.
GRIDS = {
    1: {"block_size": "4k"},
    4: {"block_size": "4k, 8k, 16k, 32k"},
    14: {"block_size": "4k, 8k, 16k, 32k, 64k, 128k, 256k", "pattern": "randread, randwrite"},
}


@dataclass(frozen=True)
class Scenario:
    noise: str
    repeats: int
    points: int = 4
    levels: int = 2
    factor: str = "scheduler"
    order: Order = Order.RANDOMISED
    effect: float = 0.0  # of every level but the first, as 0.05


@dataclass(frozen=True)
class _Planned:
    """One order of a scenario's trials, with a row without figures for each."""

    rows: tuple[ResultRow, ...]
    trials: Trials
    is_baseline: tuple[bool, ...]


def page(scenario: Scenario, chance: np.random.Generator, *, series: bool = True) -> Comparison:
    """The page of one run. Without `series`, the compared factor is x."""
    return compared(simulated(scenario, chance), query_of(scenario, series=series))


def page_of_drives(scenario: Scenario, effect: float, chance: np.random.Generator) -> Comparison:
    """The same page, with a drive of one model in place of each level. `effect`: of the first drive."""
    rows = []
    for row in simulated(scenario, chance):
        level = str(row.point[scenario.factor])
        point = {name: value for name, value in row.point.items() if name != scenario.factor}
        factor = 1 + effect if level == LEVELS[scenario.factor][0] else 1.0
        rows.append(
            msgspec.structs.replace(
                row, point=point, point_key=point_key(point), target=level, target_name=f"h/{level}", model="M",
                facts={"device.model": "M"}, iops=factor * (row.iops or 0.0),
            )
        )  # fmt: skip
    return compared(rows, CompareQuery(x="block_size", series=("target",)))


def page_of_runs(scenario: Scenario, effect: float, chance: np.random.Generator) -> Comparison:
    """The page of two runs of one plan. `effect`: of the second run."""
    rows = [
        msgspec.structs.replace(
            row, id=row.id + place * 10_000, run=1 + place, iops=(1 + place * effect) * (row.iops or 0.0),
            measured_at=row.measured_at + timedelta(days=place),
        )
        for place in range(2)
        for row in simulated(scenario, chance)
    ]  # fmt: skip
    panel, metric = query_of(scenario, series=True).panel, query_of(scenario, series=True).metric
    return compared(rows, CompareQuery(x=MATCHED, series=("run",), panel=panel, metric=metric, baseline="1"))


def simulated(scenario: Scenario, chance: np.random.Generator) -> list[ResultRow]:
    """The results of one run."""
    planned = _planned(scenario, int(chance.integers(ORDERS)))
    noise = MODELS[scenario.noise](chance, planned.trials)
    effects = np.where(planned.is_baseline, 0.0, np.log1p(scenario.effect))
    return [_measured(row, float(at)) for row, at in zip(planned.rows, noise + effects, strict=True)]


def query_of(scenario: Scenario, *, series: bool) -> CompareQuery:
    return CompareQuery(
        x="block_size" if series else scenario.factor,
        series=(scenario.factor,) if series else (),
        panel="pattern" if scenario.points == 14 else "",
        metric="latency_p99" if scenario.noise == "bucketed" else "iops",
        baseline=LEVELS[scenario.factor][0] if series else "",
    )


def compared(rows: Sequence[ResultRow], query: CompareQuery) -> Comparison:
    """The product's comparison of these results."""
    return comparison_of(selected(rows, query))


def selected(rows: Sequence[ResultRow], query: CompareQuery) -> Selected:
    matching = Matching(ResultQuery.of(ResultFilter()), ())
    return Selected(query, METRICS[query.metric], matching, tuple(rows), 0, 0, grouped_for(query, rows))


def bench_of(scenario: Scenario, chance: np.random.Generator) -> Matched:
    """Bench over the levels of the factor as configurations. Latencies have their own noise: two independent
    questions are the worst case of a page with both."""
    configurations: dict[Product, list[ResultRow]] = {}
    latencies = simulated(scenario, chance)
    for row, latency in zip(simulated(scenario, chance), latencies, strict=True):
        product = Product(Kind.CONFIGURATION, str(row.point[scenario.factor]))
        both = msgspec.structs.replace(row, p99_ns=latency.p99_ns)
        configurations.setdefault(product, []).append(both)
    return match(configurations, {product: product.value for product in configurations}, None, RATE)


def _measured(row: ResultRow, deviation: float) -> ResultRow:
    iops, latency = IOPS * np.exp(deviation), LATENCY_NS * np.exp(deviation)
    ios = round(iops * SECONDS)
    return msgspec.structs.replace(row, ios=ios, iops=ios / SECONDS, p99_ns=bucket_ns(round(latency)))


@lru_cache(maxsize=4 * ORDERS)
def _planned(scenario: Scenario, seed: int) -> _Planned:
    expansion = expand(document_of(scenario), [_TARGET], seed=seed)
    if expansion.problems:
        raise ValueError(expansion.problems)
    trials = expansion.trials
    segments: list[int] = []
    together = groupby(trials, key=lambda trial: (trial.block, trial.point[scenario.factor]))
    for number, (_, members) in enumerate(together):
        segments += [number for _ in members]
    others = [repr({**trial.point, scenario.factor: ""}) for trial in trials]
    points = {point: number for number, point in enumerate(sorted(set(others)))}
    first = LEVELS[scenario.factor][0]
    return _Planned(
        tuple(_row(trial) for trial in trials),
        Trials(segments, [points[point] for point in others]),
        tuple(trial.point[scenario.factor] == first for trial in trials),
    )


def document_of(scenario: Scenario) -> PlanDocument:
    levels = ", ".join(LEVELS[scenario.factor][: scenario.levels])
    factors = {"pattern": "randread", **GRIDS[scenario.points], scenario.factor: levels}
    return PlanDocument(
        title="Truth",
        common={"size": "64M", "runtime": f"{SECONDS}s"},
        parts=(Part(name="main", factors=factors),),
        repeats=scenario.repeats,
        order=scenario.order,
    )


_TARGET = TargetFacts(
    id="drive", kind=TargetKind.BLOCK, path="/dev/nvme0n1", name="a/nvme", stable_id="x:nvme", serial="S1",
    size_bytes=2**40, settings_allowed=("*",), host_settings_allowed=("*",), destroy=True, host_id="a",
)  # fmt: skip


def _row(trial: PlannedTrial) -> ResultRow:
    """A row with what a comparison reads; the rest is empty."""
    given: dict[str, Any] = {
        "id": trial.index, "direction": "read", "measured_at": START + timedelta(seconds=15 * trial.index),
        "invalid": False, "ios": 0, "runtime_ms": 1000 * SECONDS, "iops": 0.0, "repeat": trial.repeat,
        "point_key": trial.point_key, "configuration": hashlib.sha256(repr(trial.settings).encode()).hexdigest(),
        "trial_id": str(trial.index), "trial": trial.number, "run": 1, "host": "a", "target": "nvme",
        "target_name": "a/nvme", "point": trial.point, "summed_ids": (),
        "facts": {f"device.{name}": value for name, value in trial.settings.items()},
    }  # fmt: skip
    return ResultRow(
        **(
            dict.fromkeys(ResultRow.__struct_fields__, "")
            | {"device_share": None, "metrics": {}, "settings_changed": False, "time_known": True}
            | given
        )
    )
