"""Problems of block sizes, the order of accesses, trims and I/O engines with special needs."""

from collections.abc import Iterator

from worker.contract.workload import FioWorkload, IoEngine, TargetKind


def _blocks(work: FioWorkload) -> Iterator[str]:
    separate = work.write_block_bytes is not None or bool(work.write_block_split)
    if work.write_block_bytes is not None and (work.block_split or work.block_range):
        yield "write_block_size needs block_size: for several sizes, use block_split and write_block_split"
    if separate and not work.pattern.mixed:
        yield f"separate block sizes of writes are only for mixed patterns, not for {work.pattern}: remove them"
    low, high = work.block_range or (1, 2)
    if high <= low or high % low:
        yield "the end of block_range must be a multiple of its start, and larger"


def _sequence(work: FioWorkload) -> Iterator[str]:
    if work.pattern.random and (work.reverse or work.skip_bytes):
        yield f"reverse and skip are only for sequential patterns, not for {work.pattern}: remove them"
    if work.run_length > 1 and not work.pattern.random:
        yield f"run_length is only for random patterns, not for {work.pattern}: remove it"
    if work.reverse and not work.one_block_size:
        yield "reverse needs a single block size, because fio steps back by a fixed number of bytes"
    if work.skip_bytes and work.skip_bytes % min(work.block_sizes):
        yield "skip must be a multiple of the block size"


def _mapped(work: FioWorkload) -> Iterator[str]:
    if work.ioengine is IoEngine.MMAP and work.direct:
        yield "I/O engine mmap uses the page cache: disable direct"
    if work.ioengine is IoEngine.SG and work.pattern.trims:
        yield "trims need another I/O engine than sg"


def _on_blocks(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.BLOCK and work.pattern.trims:
        yield f"{work.pattern} needs a block device, not a {kind}"
    if kind is not TargetKind.BLOCK and work.ioengine is IoEngine.SG:
        yield f"I/O engine sg needs a SCSI drive, not a {kind}"


RULES = (_blocks, _sequence, _mapped)
TARGET_RULES = (_on_blocks,)
