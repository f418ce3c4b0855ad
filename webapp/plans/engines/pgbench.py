"""The engine pgbench: its factors, and the workload of a point."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import msgspec

from webapp.plans.engines.base import RUNTIME, Levels
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Count, Size, Switch, Value
from worker.contract.pgbench import PgbenchWorkload, Script
from worker.contract.workload import KIB, MIB
from worker.recipes import pgbench as recipe

WORKLOAD = PgbenchWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "script"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = "script"
CHART_BY = "script"
SERIES_BY = "scale"
DIRECTIONS_BY = ""
NAMED_BY = {"script": "pgbench {}", "scale": "scale {}", "clients": "{} clients"}
PHRASES = {"script": "{}", "scale": "scale {}", "clients": "{} clients", "runtime": "{} each"}

# Of the server, which several engines run.
SERVER_FACTORS = (
    replace(RUNTIME, default=60),
    Factor(
        "shared_buffers",
        "Shared buffers",
        Size(low=MIB, high=2**44, multiple=8 * KIB),
        unit="B",
        default=128 * MIB,
        help="PostgreSQL's own cache",
    ),
    Factor("database_fsync", "Database fsync", Switch(), default=True, help="PostgreSQL's fsync; off may lose data"),
    Factor(
        "synchronous_commit",
        "Synchronous commit",
        Switch(),
        default=True,
        help="a commit waits until its log is on the drive",
    ),
    Factor(
        "full_page_writes",
        "Full page writes",
        Switch(),
        default=True,
        help="whole pages in the log after each checkpoint",
    ),
    Factor(
        "max_wal_size",
        "Maximum WAL size",
        Size(low=32 * MIB, high=2**44, multiple=MIB),
        unit="B",
        default=1024 * MIB,
        help="log between two checkpoints; also needed as space",
    ),
)
SERVER_FIELDS = {
    "runtime": "runtime_s",
    "shared_buffers": "shared_buffers_bytes",
    "database_fsync": "fsync",
    "synchronous_commit": "synchronous_commit",
    "full_page_writes": "full_page_writes",
    "max_wal_size": "max_wal_bytes",
}
OF_WRITES = ("database_fsync", "synchronous_commit", "full_page_writes")

FACTORS = (
    Factor(
        "script",
        "Transactions",
        Choice(tuple(Script)),
        example="tpcb-like, select-only",
        help="pgbench's built-in scripts: read and write, write without the small tables, or only read",
    ),
    Factor(
        "scale",
        "Scale",
        Count(1, 100_000),
        default=10,
        cost=20,
        help="size of the database, about 16 MiB each; for tpcb-like at least the number of clients, which otherwise "
        "wait for each other",
    ),
    Factor("clients", "Clients", Count(1, 1000), default=8, help="connections, each with one transaction at a time"),
    Factor("threads", "pgbench threads", Count(1, 256), default=1, help="of pgbench, which share the clients"),
    *SERVER_FACTORS,
)
_FIELDS = SERVER_FIELDS | {name: name for name in ("script", "scale", "clients", "threads")}


def silent(point: Mapping[str, object]) -> tuple[str, ...]:
    """Factors without effect at this point: those of the log, if transactions only read."""
    return OF_WRITES if point.get("script") == Script.SELECT.value else ()


def workload(point: Mapping[str, Value], *, seed: int) -> PgbenchWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {field: point[name] for name, field in _FIELDS.items() if name in point}
    return msgspec.convert(fields | {"seed": seed}, PgbenchWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("script"),)
