"""The engine file copy: its factors, and the workload of a point."""

from collections.abc import Mapping

import msgspec

from webapp.plans.engines.base import BUFFERS, DROP_CACHES, FILES, SIZE, Levels
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Size, Switch, Value
from worker.contract.file_copy import CopyMethod
from worker.contract.workload import MIB, CopyWorkload
from worker.recipes import file_copy as recipe

WORKLOAD = CopyWorkload
LABEL = recipe.LABEL
DEFAULT_METRIC = recipe.DEFAULT_METRIC
REQUIRED = "size"
ALTERNATIVES: tuple[tuple[str, str], ...] = ()
SILENT_BY = "copy_method"
CHART_BY = ""
SERIES_BY = "copy_method"
DIRECTIONS_BY = ""
NAMED_BY = {"copy_method": "{} copy", "size": "{}", "block_size": "blocks of {}"}
PHRASES = {"copy_method": "{}", "block_size": "blocks of {}", "size": "{} each", "files": "{} files"}

FACTORS = (
    Factor(
        "copy_method",
        "Copy method",
        Choice(tuple(CopyMethod)),
        default=CopyMethod.BUFFERED.value,
        help="through the page cache, with O_DIRECT, by copy_file_range in the kernel, or sharing blocks (FICLONE)",
    ),
    Factor("block_size", "Block size", Size(low=4096, high=64 * MIB, multiple=4096), unit="B", default=MIB),
    Factor(
        "copy_fsync",
        "fsync of copies",
        Switch(),
        default=True,
        help="fsync each completed copy; the measured time includes it",
    ),
    SIZE,
    FILES,
    BUFFERS,
    DROP_CACHES,
)
_FIELDS = {
    "copy_method": "method",
    "block_size": "block_bytes",
    "copy_fsync": "fsync",
    "size": "size_bytes",
    "files": "files",
    "buffers": "buffers",
}


def silent(point: Mapping[str, object]) -> tuple[str, ...]:
    """Factors without effect at this point: the block size of a copy that moves no blocks."""
    return ("block_size",) if point.get("copy_method") == CopyMethod.REFLINK.value else ()


def workload(point: Mapping[str, Value], *, seed: int) -> CopyWorkload:
    """Raises msgspec.ValidationError if the contract does not allow it."""
    fields = {field: point[name] for name, field in _FIELDS.items() if name in point}
    return msgspec.convert(fields | {"seed": seed}, CopyWorkload)


def time_s(_levels: Levels) -> None:
    """A copy ends when all files are copied."""


def kind(point: Mapping[str, Value]) -> tuple[Value, ...]:
    return (point.get("copy_method"),)
