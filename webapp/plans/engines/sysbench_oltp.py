"""The engine sysbench OLTP: its factors, and the workload of a point."""

from collections.abc import Mapping
from statistics import fmean

import msgspec

from webapp.plans.engines.base import Levels
from webapp.plans.engines.pgbench import OF_WRITES, SERVER_FACTORS, SERVER_FIELDS
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Count, Value
from worker.contract.sysbench_oltp import OltpTest, OltpWorkload
from worker.recipes import sysbench_oltp as recipe

WORKLOAD = OltpWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "oltp_test"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = "oltp_test"
CHART_BY = "oltp_test"
SERIES_BY = "table_rows"
DIRECTIONS_BY = ""
NAMED_BY = {"oltp_test": "sysbench {}", "tables": "{} tables", "table_rows": "{} rows", "oltp_threads": "{} threads"}
PHRASES = {"oltp_test": "{}", "table_rows": "{} rows", "oltp_threads": "{} threads", "runtime": "{} each"}

FACTORS = (
    Factor(
        "oltp_test",
        "OLTP test",
        Choice(tuple(OltpTest)),
        example="oltp_read_write, oltp_point_select",
        help="transactions of sysbench: reads and writes, only reads, only writes, or the read of one row",
    ),
    Factor("tables", "Tables", Count(1, 1000), default=1, cost=20),
    Factor("table_rows", "Rows", Count(1, 2**31), default=100_000, cost=20, help="of each table, about 256 bytes each"),
    Factor("oltp_threads", "OLTP threads", Count(1, 1000), default=8, help="each with one transaction at a time"),
    *SERVER_FACTORS,
)
_FIELDS = SERVER_FIELDS | {"oltp_test": "test", "tables": "tables", "table_rows": "rows", "oltp_threads": "threads"}


def silent(point: Mapping[str, object]) -> tuple[str, ...]:
    """Factors without effect at this point: those of the log, if transactions only read."""
    return OF_WRITES if point.get("oltp_test") in (OltpTest.READ_ONLY.value, OltpTest.POINT_SELECT.value) else ()


def workload(point: Mapping[str, Value], *, seed: int) -> OltpWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {field: point[name] for name, field in _FIELDS.items() if name in point}
    return msgspec.convert(fields | {"seed": seed}, OltpWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("oltp_test"),)
