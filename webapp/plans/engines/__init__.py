"""The engines that plans can use, by their names in the contract."""

from collections.abc import Mapping

from webapp.plans.engines import array_action, file_copy, fio, idle, memory_bandwidth, pgbench, sysbench, sysbench_oltp
from webapp.plans.engines.base import PlanEngine
from worker.recipes import DEFAULT_ENGINE

ENGINE = "engine"  # the factor that names it

# The registry of engines.
ENGINES: Mapping[str, PlanEngine] = {
    engine.WORKLOAD.engine_name(): engine
    for engine in (fio, file_copy, pgbench, sysbench, sysbench_oltp, idle, memory_bandwidth, array_action)
}
CHART_FACTORS = frozenset(engine.CHART_BY for engine in ENGINES.values()) - {""}


def name_of(point: Mapping[str, object]) -> str:
    """The name of the point's engine."""
    return str(point.get(ENGINE, DEFAULT_ENGINE))


def engine_of(point: Mapping[str, object]) -> PlanEngine:
    return ENGINES[name_of(point)]


def engine_name(texts: Mapping[str, str]) -> str:
    """The engine of a part; the default engine if the part names none or an unknown one."""
    name = texts.get(ENGINE, DEFAULT_ENGINE).strip()
    return name if name in ENGINES else DEFAULT_ENGINE
