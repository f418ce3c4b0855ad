"""Problems of a workload's further options: offsets, limits, distributions, data and verification."""

from collections.abc import Iterator

from worker.contract.fio_options import RATE_LIMITS, WRITE_LIMITS
from worker.contract.workload import Buffers, FioWorkload, IoEngine, TargetKind

_NEEDS_QUEUE = ("iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low")
_ONE_ENGINE = {
    "force_async": IoEngine.IO_URING,
    "sqthread_poll_cpu": IoEngine.IO_URING,
    "userspace_reap": IoEngine.LIBAIO,
}
_NEEDS = {
    "rate_process": "rate or rate_iops",
    "thinktime_spin": "thinktime",
    "thinktime_blocks": "thinktime",
    "thinktime_iotime": "thinktime",
    "latency_window": "latency_target",
    "latency_percentile": "latency_target",
    "latency_run": "latency_target",
    "rate_ignore_thinktime": "thinktime",
    "dedupe_mode": "dedupe_percentage",
    "dedupe_working_set_percentage": "dedupe_percentage",
    "buffer_compress_chunk": "buffer_compress_percentage",
    "verify_pattern": "verify",
    "verify_interval": "verify",
    "verify_backlog": "verify",
    "verify_backlog_batch": "verify_backlog",
    "verify_async": "verify",
    "verify_fatal": "verify",
}  # an option -> the option without which it has no effect


def problems(work: FioWorkload, kind: TargetKind) -> tuple[str, ...]:
    """Only for a workload with such options: the others have none of these problems."""
    return (*(problem for rule in RULES for problem in rule(work)), *_region(work, kind))


def _needed(work: FioWorkload) -> Iterator[str]:
    given = {*work.options.wanted()}
    for name in sorted(given & _NEEDS.keys()):
        needed = _NEEDS[name]
        if given.isdisjoint(needed.split(" or ")):
            yield f"{name} needs {needed}"


def _order(work: FioWorkload) -> Iterator[str]:
    if work.options.rw_sequencer and work.run_length == 1:
        yield "rw_sequencer needs a run_length above 1"
    if work.options.percentage_random is not None and not work.pattern.random:
        yield f"percentage_random needs a random pattern, not {work.pattern}"


def _distribution(work: FioWorkload) -> Iterator[str]:
    """As fio checks it, but before the trial starts."""
    name, _, value = (work.options.random_distribution or "").partition(":")
    if name and not work.pattern.random:
        yield f"random_distribution is only for random patterns, not for {work.pattern}: remove it"
    if name == "zipf" and float(value) == 1:
        yield "fio does not support zipf:1; use a value near it, such as zipf:1.01"
    if name == "zoned":
        zones = [tuple(map(int, zone.split("/"))) for zone in value.split(":")]
        if [sum(column) for column in zip(*zones, strict=True)] != [100, 100]:
            yield "the zones of random_distribution must add up to 100 % of the I/Os and 100 % of the size"


def _queue(work: FioWorkload) -> Iterator[str]:
    options = work.options.wanted()
    for name in _NEEDS_QUEUE:
        value = options.get(name)
        if isinstance(value, int) and value > work.iodepth:
            yield f"{name}={value} is larger than the queue depth {work.iodepth}"
    for name, engine in _ONE_ENGINE.items():
        if name in options and work.ioengine is not engine:
            yield f"{name} needs I/O engine {engine}, not {work.ioengine}"
    if "sqthread_poll_cpu" in options and not work.uring.sqthread_poll:
        yield "sqthread_poll_cpu needs sqthread_poll"
    least, most = work.options.iodepth_batch_complete_min, work.options.iodepth_batch_complete_max
    if least and most and least > most:
        yield "iodepth_batch_complete_min is larger than iodepth_batch_complete_max"


def _limits(work: FioWorkload) -> Iterator[str]:
    """A trial that ends by an amount has a time limit, which assumes that the drive sets the speed."""
    slowed = {*RATE_LIMITS, "thinktime", "latency_target"}
    if work.amount_bytes is not None and (found := sorted(slowed & work.options.wanted().keys())):
        yield f"{', '.join(found)} needs a runtime, because the time of an amount would be unknown"
    limits_writes = not work.options.wanted().keys().isdisjoint(WRITE_LIMITS.values())
    if limits_writes and not work.pattern.mixed:
        yield f"separate limits of writes are only for mixed patterns, not for {work.pattern}: use rate or rate_iops"


def _data(work: FioWorkload) -> Iterator[str]:
    """scramble_buffers would change duplicates, and a repeated buffer is a duplicate."""
    generated = work.options.dedupe_percentage is not None or work.options.buffer_compress_percentage is not None
    if generated and work.buffers is not Buffers.REFILLED:
        yield "dedupe_percentage and buffer_compress_percentage need buffers=refilled"
    if work.options.buffer_pattern and work.buffers is not Buffers.REPEATED:
        yield "buffer_pattern needs buffers=repeated"


def _verify(work: FioWorkload) -> Iterator[str]:
    """fio skips verification at the end of a run time, and reads of a mix would verify data without checksums."""
    if not work.verifies:
        return
    if work.pattern.reads or not work.pattern.stores or work.pattern.trims:
        yield f"verify needs a pattern that only writes, not {work.pattern}"
    if work.amount_bytes is None:
        yield "verify needs an amount: at the end of a run time, fio does not read the data back"
    used_bytes = (work.size_bytes or 0) * work.files
    if used_bytes and not work.pattern.random and (work.amount_bytes or 0) > used_bytes:
        yield "verify of a sequential pattern writes each block once: use an amount up to the size"
    if not work.one_block_size:
        yield "verify needs a single block size"
    if work.threads > 1 and not work.options.offset_increment and work.pattern.random:
        yield "verify needs offset_increment with several random jobs, which would overwrite each other's blocks"
    if (work.options.verify == "pattern") is not bool(work.options.verify_pattern):
        yield "verify=pattern needs verify_pattern, and no other checksum has one"


def _region(work: FioWorkload, kind: TargetKind) -> Iterator[str]:
    """The used part must stay inside the target."""
    given = sorted({"offset", "offset_increment"} & work.options.wanted().keys())
    if given and kind is TargetKind.DIRECTORY:
        yield f"{' and '.join(given)} need a device or a file: files in a directory are used from start to end"
    if given and work.size_bytes is None:
        yield f"{' and '.join(given)} need a size, so that the used part ends inside the target"


RULES = (_needed, _order, _distribution, _queue, _limits, _data, _verify)
