"""Whether I/O consists of whole logical sectors of the device (`Workload.sector_multiples`)."""

from collections.abc import Iterator

from webapp.core.formatting import bytes_binary
from webapp.plans.factors import FACTORS
from webapp.plans.values import BlockRange, BlockSplit, Value
from worker.contract.workload import Workload

ALIGNED = (
    "block_size", "write_block_size", "block_split", "write_block_split", "block_range", "skip", "offset",
    "offset_increment", "blockalign",
)  # fmt: skip


def misalignments(work: Workload, sector_bytes: int) -> Iterator[str]:
    """The values of the workload that are not multiples of the sector, as noun phrases; none if it is unknown."""
    if sector_bytes:
        yield from (f"{what} of {bytes_binary(size)}" for what, size in work.sector_multiples if size % sector_bytes)


def is_misaligned(factor: str, level: Value, sector_bytes: int) -> bool:
    """Whether a level of one of the factors ALIGNED is not a multiple of the sector."""
    return bool(sector_bytes) and any(size % sector_bytes for size in _sizes(factor, level))


def _sizes(factor: str, level: Value) -> tuple[int, ...]:
    values = FACTORS[factor].values
    if isinstance(values, BlockSplit):
        return tuple(size for size, _percent in values.shares(level))
    if isinstance(values, BlockRange):
        return values.ends(level)
    return (level,) if isinstance(level, int) else ()
