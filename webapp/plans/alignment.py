"""Whether I/O consists of whole logical sectors of the device. Direct I/O that does not fails with EINVAL.

Sources: open(2), O_DIRECT: lengths and offsets are multiples of the logical block size; Linux, block/fops.c
(blkdev_dio_invalid) and block/blk-lib.c (__blkdev_issue_discard: trims, also without O_DIRECT).
"""

from collections.abc import Iterator

from webapp.core.formatting import bytes_binary
from webapp.plans.factors import FACTORS
from webapp.plans.values import BlockRange, BlockSplit, Value
from worker.contract.workload import FioWorkload, IoEngine, Workload

ALIGNED = (
    "block_size", "write_block_size", "block_split", "write_block_split", "block_range", "skip", "offset",
    "offset_increment", "blockalign",
)  # fmt: skip


def misalignments(work: Workload, sector_bytes: int) -> Iterator[str]:
    """The values of the workload that are not multiples of the sector, as noun phrases; none if it is unknown."""
    if not sector_bytes or not isinstance(work, FioWorkload) or not needs_sectors(work):
        return
    options = work.options
    further = (
        ("the skip", work.skip_bytes), ("the offset", options.offset),
        ("the offset increment", options.offset_increment), ("the block alignment", options.blockalign),
    )  # fmt: skip
    yield from (f"a block of {bytes_binary(size)}" for size in dict.fromkeys(work.block_sizes) if size % sector_bytes)
    yield from (f"{what} of {bytes_binary(size)}" for what, size in further if size and size % sector_bytes)


def needs_sectors(work: Workload) -> bool:
    """Whether the device gets the I/O as it is, not through the page cache."""
    return isinstance(work, FioWorkload) and (work.direct or work.pattern.trims or work.ioengine is IoEngine.SG)


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
