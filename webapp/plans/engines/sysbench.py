"""The engine sysbench: its factors, and the workload of a point."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import msgspec

from webapp.plans.engines.base import FILES, RUNTIME, SIZE, Levels
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Count, Size, Switch, Value
from worker.contract.sysbench import FileTest, SysbenchWorkload
from worker.contract.workload import KIB, MIB
from worker.recipes import sysbench as recipe

WORKLOAD = SysbenchWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "file_test"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = "file_test"
CHART_BY = "file_test"
SERIES_BY = "block_size"
DIRECTIONS_BY = "file_test"
NAMED_BY = {"file_test": "sysbench {}", "block_size": "{}", "numjobs": "{} jobs", "size": "{}"}
PHRASES = {"file_test": "{}", "block_size": "blocks of {}", "numjobs": "{} jobs", "runtime": "{} each"}

FACTORS = (
    Factor(
        "file_test",
        "File test",
        Choice(tuple(FileTest)),
        example="rndrd, rndwr",
        help="sysbench fileio: read, write or rewrite in order, or read or write at random",
    ),
    Factor("block_size", "Block size", Size(low=512, high=16 * MIB, multiple=512), unit="B", default=16 * KIB),
    Factor("numjobs", "Jobs", Count(1, 1024), default=1, help="sysbench's threads, each with one I/O at a time"),
    replace(SIZE, default=64 * MIB),
    FILES,
    Factor("direct", "Direct", Switch(), default=True, help="O_DIRECT: past the page cache"),
    Factor("write_fsync", "fsync of writes", Switch(), default=False, help="after each write; its latency includes it"),
    RUNTIME,
)
_FIELDS = {
    "file_test": "test",
    "block_size": "block_bytes",
    "numjobs": "threads",
    "size": "size_bytes",
    "files": "files",
    "direct": "direct",
    "write_fsync": "fsync",
    "runtime": "runtime_s",
}


def silent(point: Mapping[str, object]) -> tuple[str, ...]:
    """Factors without effect at this point: fsync, if it only reads."""
    return ("write_fsync",) if point.get("file_test") in (FileTest.SEQRD.value, FileTest.RNDRD.value) else ()


def workload(point: Mapping[str, Value], *, seed: int) -> SysbenchWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {field: point[name] for name, field in _FIELDS.items() if name in point}
    return msgspec.convert(fields | {"seed": seed}, SysbenchWorkload)


def time_s(levels: Levels) -> float:
    return fmean(float(seconds or 0) for seconds in levels["runtime"])


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("file_test"),)
