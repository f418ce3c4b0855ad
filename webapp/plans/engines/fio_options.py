"""Factors of fio's further options, under fio's names; a point contains them only if the plan sets them.

The fields of `worker.contract.fio_options.FioOptions` with the same names have the types and the limits.
"""

from webapp.plans.setting_rows import Factor, FactorKind
from webapp.plans.values import Choice, Count, Microseconds, Size, Switch, Token, Values
from worker.contract import fio_options as contract

_LARGE = 2**31
_OF_EACH = "of each job and direction"


def _option(
    name: str, label: str, values: Values, help: str, *, unit: str = "", example: str = "", cost: int = 0
) -> Factor:
    return Factor(name, label, values, unit, FactorKind.OPTION, cost, help=help, example=example)


def _rate(name: str, label: str, help: str) -> Factor:
    return _option(name, label, Size(1, 2**50, 1, suffix="/s"), help, unit="B/s", example="100M")


def _hex(name: str, label: str, help: str) -> Factor:
    return _option(name, label, Token(contract.HEX, "`0xdeadbeef`"), help, example="0xdeadbeef")


def _time(name: str, label: str, help: str, example: str) -> Factor:
    return _option(name, label, Microseconds(low=1), help, unit="µs", example=example)


def _count(name: str, label: str, help: str, high: int = _LARGE) -> Factor:
    return _option(name, label, Count(1, high), help, example="8")


def _percent(name: str, label: str, help: str) -> Factor:
    return _option(name, label, Count(0, 100, " %"), help, unit="%", example="50")


def _switch(name: str, label: str, help: str) -> Factor:
    return _option(name, label, Switch(), help, example="on, off")


FACTORS = (
    _option(
        "offset",
        "Offset",
        Size(low=0),
        "start of the used part of a device or file",
        unit="B",
        example="1G",
        cost=10,
    ),
    _option(
        "offset_increment",
        "Offset per job",
        Size(low=0),
        "distance between the starts of two jobs; each job then uses `size` bytes; 0: all start at the same offset",
        unit="B",
        example="1G",
        cost=10,
    ),
    _option("blockalign", "Alignment", Size(), "random offsets are multiples of it; fio's ba", unit="B", example="8k"),
    _option(
        "random_distribution",
        "Offset distribution",
        Token(
            f"{contract.DISTRIBUTION}|{contract.ZONES}", "`zipf:1.1`, `pareto:0.2`, `normal:20` or `zoned:60/10:40/90`"
        ),
        "of random offsets; zoned: per cent of the I/Os / per cent of the size, for each zone",
        example="random, zipf:1.1",
    ),
    _switch("norandommap", "Offsets drawn freely", "off: every block is visited once before any is visited twice"),
    _percent("percentage_random", "Random share", "of a random pattern; the other I/Os continue sequentially"),
    _percent("write_percentage_random", "Random share of writes", "of a mix; percentage_random is then that of reads"),
    _option(
        "rw_sequencer",
        "Run offsets",
        Choice(tuple(contract.RwSequencer)),
        "with run_length: the I/Os of a run are sequential, or all at the same offset",
        example="sequential, identical",
    ),
    _option(
        "file_service_type",
        "File choice",
        Token(contract.SERVICE, "`random`, `roundrobin`, `sequential` or `zipf:1.2`"),
        "order in which a job uses its files",
        example="roundrobin, random",
    ),
    _option(
        "own_files",
        "File per job",
        Switch(),
        "in a directory: each job uses a file of its own, as iozone's threads do, instead of all files",
        example="on, off",
        cost=20,
    ),
    _count("openfiles", "Open files", "files of a job that are open at the same time"),
    _switch("pre_read", "Read into cache", "reads the whole file into the page cache before the measurement"),
    _switch(
        "invalidate", "Files dropped from cache", "when a trial opens them, from the page cache; on is the default"
    ),
    _option(
        "fadvise_hint",
        "Hints to the kernel",
        Choice(
            tuple(contract.FadviseHint),
            {"0": "none", "1": "of the pattern", "random": "random", "sequential": "sequential"},
        ),
        "about the order of buffered accesses; without it, none are given",
        example="0, 1",
    ),
    _rate("rate", "Rate limit", f"{_OF_EACH}; with write_rate, of reads"),
    _rate("write_rate", "Write rate limit", "of the writes of each job in a mixed pattern"),
    _option("rate_iops", "IOPS limit", Count(1, _LARGE), f"{_OF_EACH}; with write_rate_iops, of reads", example="1000"),
    _option(
        "write_rate_iops",
        "Write IOPS limit",
        Count(1, _LARGE),
        "of the writes of each job in a mixed pattern",
        example="1000",
    ),
    _option(
        "rate_process",
        "Arrivals",
        Choice(tuple(contract.RateProcess)),
        "of I/Os below a rate limit: at equal distances, or at random (Poisson)",
        example="linear, poisson",
    ),
    _switch("rate_ignore_thinktime", "Rate limit without pauses", "the limit does not count the time of thinktime"),
    _time("thinktime", "Think time", "pause after each I/O, or after thinktime_blocks I/Os", "100us, 1ms"),
    _time("thinktime_spin", "Busy think time", "part of the think time that uses the CPU", "50us"),
    _count("thinktime_blocks", "I/Os per pause", "I/Os between two pauses of thinktime"),
    _time("thinktime_iotime", "I/O time per pause", "time of I/O between two pauses of thinktime", "10ms"),
    _time(
        "latency_target", "Latency target", "fio searches the largest queue depth at which latency stays below", "1ms"
    ),
    _time("latency_window", "Latency window", "time over which fio compares with the latency target", "1s"),
    _option(
        "latency_percentile",
        "Latency percentile",
        Token(contract.PERCENTILE, "`99.9`"),
        "share of I/Os that must meet the latency target",
        unit="%",
        example="99.9",
    ),
    _switch(
        "latency_run", "Latency search continues", "runs for the whole time, instead of ending when the depth is found"
    ),
    _time("max_latency", "Maximum latency", "the trial fails when an I/O takes longer", "1s"),
    _count("iodepth_batch", "Submission batch", "I/Os submitted at once; iodepth_batch_submit", 4096),
    _count("iodepth_batch_complete_min", "Smallest completion batch", "completions that fio waits for", 4096),
    _count("iodepth_batch_complete_max", "Largest completion batch", "completions that fio takes at once", 4096),
    _count("iodepth_low", "Refill depth", "depth at which fio submits new I/Os", 4096),
    _switch("serialize_overlap", "Serialise overlaps", "waits with an I/O that overlaps one in flight"),
    _option(
        "io_submit_mode",
        "Submission",
        Choice(tuple(contract.SubmitMode)),
        "by the job itself, or by separate threads",
        example="inline, offload",
    ),
    _count("force_async", "Forced workers", "io_uring: every such I/O is handed to a worker thread of the kernel"),
    _option(
        "sqthread_poll_cpu",
        "Submission CPU",
        Count(0, 99_999),
        "io_uring: CPU of the submission thread",
        example="0",
    ),
    _switch("userspace_reap", "Reap in user space", "libaio: completions without a system call"),
    _count("fdatasync", "fdatasync every", "number of writes between two calls of fdatasync"),
    _switch("fsync_on_close", "fsync on close", "fsync of each file when fio closes it"),
    _option(
        "sync_file_range",
        "sync_file_range",
        Token(contract.SYNC_FILE_RANGE, "`wait_before+write:8`"),
        "flags, and the number of writes between two calls",
        example="write:8",
    ),
    _percent("dedupe_percentage", "Duplicates", "share of identical blocks; needs buffers: refilled"),
    _option(
        "dedupe_mode",
        "Duplicates of",
        Choice(tuple(contract.DedupeMode)),
        "the last block, or a random block of a working set",
        example="repeat, working_set",
    ),
    _percent("dedupe_working_set_percentage", "Duplicates' working set", "share of the size that is duplicated"),
    _percent("buffer_compress_percentage", "Compressibility", "of the written data; needs buffers: refilled"),
    _option(
        "buffer_compress_chunk",
        "Compressible chunk",
        Size(),
        "unit in which data is compressible",
        unit="B",
        example="4k",
    ),
    _hex("buffer_pattern", "Data pattern", "bytes that are repeated as data; needs buffers: repeated"),
    _option(
        "verify",
        "Verification",
        Choice(tuple(contract.Verify)),
        "checksum in each block; after the writes, all data is read back and compared",
        example="crc32c",
    ),
    _hex("verify_pattern", "Verified pattern", "bytes of the data, for verify: pattern"),
    _option("verify_interval", "Verified unit", Size(), "bytes with one checksum", unit="B", example="4k"),
    _count("verify_backlog", "Verification backlog", "blocks written before they are read back"),
    _count("verify_backlog_batch", "Verification batch", "blocks read back at once"),
    _count("verify_async", "Verification threads", "threads that compare checksums", 64),
    _switch("verify_fatal", "Stop at wrong data", "ends at the first block with wrong data"),
)
NAMES = tuple(factor.name for factor in FACTORS)
