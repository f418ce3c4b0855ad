"""The fio job-file options that Sweetspot supports, each with the factor that it sets.

This is an allowlist: any other option is refused by name, including options of newer fio versions. `refused_options`
has the reasons, `option_values` reads the texts.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from worker.contract.fio_options import RATE_LIMITS, FioOptions
from worker.contract.workload import Buffers
from worker.recipes.fio.option_values import (
    Stored,
    Values,
    read_always,
    read_anything,
    read_as,
    read_block_range,
    read_block_size,
    read_block_split,
    read_buffers_if,
    read_count,
    read_cpus,
    read_cpus_policy,
    read_engine,
    read_flag,
    read_limits,
    read_nice,
    read_number,
    read_pattern,
    read_percent,
    read_seconds,
    read_size,
    read_size_or_percent,
    read_switch,
    read_sync,
    read_unchanged,
)


class Meaning(StrEnum):
    """How the reader of a job interprets the value."""

    VALUE = "value"  # unchanged
    PER_JOB = "per job"  # per job: multiply by the number of jobs
    OVER_FILES = "over files"  # total of all files of a job: divide by the number of files
    SEQUENCE = "sequence"  # bytes between two I/Os: positive or negative, depends on the block size
    IGNORED = "ignored"  # does not affect the measurement, or is always set
    LOGGING = "logging"  # ignored, and the plan's note says so


class Option(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    factor: str = ""  # the factor it sets; "" if none
    read: Callable[[str], Values]
    aliases: tuple[str, ...] = ()
    meaning: Meaning = Meaning.VALUE
    note: str = ""  # note for the person who imports the job


def _ignored(*names: str, why: str, meaning: Meaning = Meaning.IGNORED) -> tuple[Option, ...]:
    return tuple(Option(name=name, read=read_anything, meaning=meaning, note=why) for name in names)


def _fixed(name: str, *allowed: str, why: str) -> Option:
    return Option(name=name, read=read_always(*allowed, why=why), meaning=Meaning.IGNORED, note=why)


def _simple(name: str, factor: str, read: Callable[[str], Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=read_as(factor, read), aliases=aliases)


# Options whose factor has fio's name and notation. Rate limits of reads and writes are in one option.
_SAME = tuple(name for name in FioOptions.__struct_fields__ if name not in RATE_LIMITS)
_FLAGS = (
    "pre_read",
    "serialize_overlap",
    "userspace_reap",
    "fsync_on_close",
    "verify_fatal",
    "latency_run",
    "rate_ignore_thinktime",
)
_ALIASES = {
    "blockalign": ("ba",),
    "iodepth_batch": ("iodepth_batch_submit",),
    "iodepth_batch_complete_min": ("iodepth_batch_complete",),
}

_LOGS = (
    "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_avg_msec", "log_hist_msec",
    "log_hist_coarseness", "log_max_value", "log_offset", "log_prio", "log_entries", "log_compression",
    "log_compression_cpus", "log_store_compressed", "log_unix_epoch", "log_alternate_epoch",
    "log_alternate_epoch_clock_id", "per_job_logs", "bwavgtime", "iopsavgtime", "disk_util", "slat_percentiles",
    "block_error_percentiles", "significant_figures", "unified_rw_reporting", "output", "output-format",
    "status-interval", "eta", "eta-newline", "minimal", "append-terse", "bandwidth-log", "error_dump",
)  # fmt: skip
_LOGS_WHY = "a sample of every second and the whole latency histogram are always stored"

_OPTIONS = (
    Option(
        name="rw",
        factor="pattern",
        read=read_pattern,
        aliases=("readwrite",),
        meaning=Meaning.SEQUENCE,
        note="rw=read:64k sets skip, rw=read:-8k sets reverse, rw=randread:8 sets run_length",
    ),
    _simple("rwmixread", "read_percent", read_percent),
    _simple("rwmixwrite", "read_percent", lambda text: 100 - read_percent(text)),
    Option(
        name="bs",
        factor="block_size",
        read=read_block_size,
        aliases=("blocksize",),
        note="a second value is that of writes: write_block_size",
    ),
    Option(
        name="bssplit",
        factor="block_split",
        read=read_block_split,
        note="a second value is that of writes: write_block_split",
    ),
    Option(name="bsrange", factor="block_range", read=read_block_range, aliases=("blocksize_range",)),
    Option(name="rate", factor="rate", read=read_limits("rate"), note="a second value is that of writes: write_rate"),
    Option(
        name="rate_iops",
        factor="rate_iops",
        read=read_limits("rate_iops"),
        note="a second value is that of writes: write_rate_iops",
    ),
    *(_simple(name, name, read_flag if name in _FLAGS else read_unchanged, *_ALIASES.get(name, ())) for name in _SAME),
    Option(
        name="loops",
        factor="amount",
        read=read_number(1, 1_000_000),
        note="multiplies the amount",
    ),
    Option(name="prioclass", factor="ionice", read=read_number(0, 3)),
    Option(name="prio", factor="ionice", read=read_number(0, 7)),
    _simple("numa_cpu_nodes", "numa_node", read_count),
    Option(name="ioengine", factor="ioengine", read=read_engine),
    *(_simple(n, n, read_switch) for n in ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored")),
    _simple("numjobs", "numjobs", read_count),
    _simple("iodepth", "iodepth", read_count),
    _simple("direct", "direct", read_switch),
    _simple("buffered", "direct", lambda text: not read_switch(text)),
    Option(name="sync", factor="sync", read=read_sync),
    _simple("fsync", "fsync_every", read_count),
    _simple("end_fsync", "end_fsync", read_switch),
    Option(
        name="size",
        factor="size",
        read=read_size_or_percent,
        meaning=Meaning.OVER_FILES,
        note="fio's size is the total of all files, Sweetspot's is the size of each file; size=70% sets size_percent",
    ),
    _simple("filesize", "size", read_size),
    _simple("nrfiles", "files", read_count, "nr_files"),
    _simple("runtime", "runtime", read_seconds, "timeout"),
    _simple("ramp_time", "ramp", read_seconds),
    _simple("nice", "nice", read_nice),
    _simple("cpus_allowed", "cpus", read_cpus),
    _simple("cpus_allowed_policy", "cpus_policy", read_cpus_policy),
    Option(
        name="io_size",
        factor="amount",
        read=read_as("amount", read_size),
        aliases=("io_limit",),
        meaning=Meaning.PER_JOB,
        note="fio's io_size is per job, Sweetspot's amount is the total of all jobs",
    ),
    Option(name="refill_buffers", factor="buffers", read=read_buffers_if(Buffers.REFILLED)),
    Option(name="zero_buffers", factor="buffers", read=read_buffers_if(Buffers.ZEROES)),
    Option(name="scramble_buffers", factor="buffers", read=read_buffers_if(Buffers.REPEATED, when=False)),
    _fixed("time_based", "", "1", why="a trial with a runtime always uses the whole runtime"),
    _fixed("norandommap", "", "1", why="random offsets are drawn independently"),
    _fixed("group_reporting", "", "1", why="the jobs of a stream are reported together"),
    _fixed("allow_file_create", "0", "1", why="only the files of a directory target are ever created"),
    *_ignored("filename", "directory", why="the target is chosen when a run is started"),
    *_ignored("description", why="excluded from the measurement"),
    *_ignored("name", why="the section's name"),
    *_ignored("randrepeat", "randseed", "allrandrepeat", why="the plan sets the seed"),
    *_ignored("thread", why="jobs are processes, fio's default"),
    _fixed("kb_base", "1024", why="sizes are binary"),
    _fixed("do_verify", "", "1", why="data is read back whenever `verify` is given"),
    _fixed("random_generator", "tausworthe", "tausworthe64", why="random offsets are drawn independently"),
    _fixed("fadvise_hint", "0", "1", why="buffered I/O gives the kernel no hints, so that read-ahead has its effect"),
    _fixed("create_only", "0", why="a trial must measure something"),
    _fixed("continue_on_error", "none", "0", why="an I/O error ends the trial"),
    _fixed("thinktime_blocks_type", "complete", why="pauses are counted in completed I/Os"),
    *_ignored(*_LOGS, why=_LOGS_WHY, meaning=Meaning.LOGGING),
    *_ignored(
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "disable_bw_measurement",
        "stats",
        why="latencies and rates are always measured",
    ),
    *_ignored("gtod_cpu", "clocksource", why="fio's default clock is used"),
    *_ignored(
        "fallocate",
        "overwrite",
        "create_serialize",
        "create_fsync",
        "create_on_open",
        "unlink",
        "unlink_each_loop",
        why="Sweetspot creates, fills and removes the files of a directory target",
    ),
    *_ignored("softrandommap", why="random offsets are drawn independently"),
    *_ignored("exitall", "exit_what", "new_group", "startdelay", "delay", why="trials run one after another"),
    *_ignored("unit_base", why="all values are stored in bytes"),
    *_ignored("numa_mem_policy", why="memory comes from the node of `numa_cpu_nodes`"),
    *_ignored("verify_state_save", why="always off: fio would write a file"),
    *_ignored("verifysort", "verifysort_nr", "experimental_verify", why="fio's default is used"),
    Option(
        name="stonewall",
        read=read_anything,
        aliases=("wait_for_previous",),
        meaning=Meaning.IGNORED,
        note="trials run one after another",
    ),
    *_ignored("invalidate", "exitall_on_error", why="always on"),
    *_ignored("lat_percentiles", "clat_percentiles", why="latency is fio's total latency"),
    *_ignored("percentile_list", why="the complete histogram is stored"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}
