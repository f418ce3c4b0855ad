"""The options of fio job files: the factor that each sets, its notation, and why others are refused.

This is an allowlist: any other option is refused by name, including options of newer fio versions.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from worker.contract.fio_options import RATE_LIMITS, FioOptions
from worker.contract.workload import Buffers
from worker.recipes.fio import option_values as values


class Meaning(StrEnum):
    """How the reader of a job interprets the value."""

    VALUE = "value"  # unchanged
    PER_JOB = "per job"  # per job: multiply by the number of jobs
    OVER_FILES = "over files"  # total of all files of a job: divide by the number of files
    SEQUENCE = "sequence"  # bytes between two I/Os: positive or negative, depends on the block size
    ALWAYS = "always"  # each trial does this: other values are refused
    LEFT_OUT = "left out"  # the plan's note says so, under the differences from fio
    SEVERAL = "several"  # the reader combines it with other options of the job, or with other jobs


class Option(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    factor: str = ""  # the factor it sets; "" if none
    read: Callable[[str], values.Values]
    aliases: tuple[str, ...] = ()
    meaning: Meaning = Meaning.VALUE
    note: str = ""  # note for the person who imports the job
    default: str | None = None  # of an option that is left out: with this value, its note would be untrue


def _left_out(*names: str, why: str, default: str | None = None) -> tuple[Option, ...]:
    return tuple(
        Option(name=name, read=values.read_anything, meaning=Meaning.LEFT_OUT, note=why, default=default)
        for name in names
    )


def _fixed(name: str, *allowed: str, why: str) -> Option:
    return Option(name=name, read=values.read_always(*allowed, why=why), meaning=Meaning.ALWAYS, note=why)


def _several(name: str, read: Callable[[str], values.Values], note: str, *aliases: str) -> Option:
    return Option(name=name, read=read, aliases=aliases, meaning=Meaning.SEVERAL, note=note)


def _simple(name: str, factor: str, read: Callable[[str], values.Stored], *aliases: str) -> Option:
    return Option(name=name, factor=factor, read=values.read_as(factor, read), aliases=aliases)


# Options whose factor has fio's name and notation. Rate limits of reads and writes are in one option.
_OTHERWISE = {
    *RATE_LIMITS, "percentage_random", "write_percentage_random", "norandommap", "invalidate", "verify", "offset",
    "offset_increment", "random_distribution", "own_files",
}  # fmt: skip
_SAME = tuple(name for name in FioOptions.__struct_fields__ if name not in _OTHERWISE)
_OFF_AT_ZERO = (
    "blockalign", "openfiles", "thinktime", "thinktime_spin", "thinktime_iotime", "latency_target", "max_latency",
    "force_async", "fdatasync", "verify_interval", "verify_backlog", "verify_backlog_batch", "verify_async",
    "iodepth_low", "verify_pattern",
)  # fmt: skip
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
    "log_alternate_epoch_clock_id", "log_window_value", "log_issue_time", "per_job_logs", "bwavgtime", "iopsavgtime",
    "disk_util", "slat_percentiles", "lat_percentiles", "clat_percentiles", "percentile_list",
    "block_error_percentiles", "significant_figures", "unified_rw_reporting", "output", "output-format",
    "status-interval", "eta", "eta-newline", "minimal", "append-terse", "bandwidth-log", "latency-log", "error_dump",
    "write_lat_log_cycles",
)  # fmt: skip
_LOGS_WHY = "a sample of every second and the whole latency histogram are always stored"
_MEASURED = (
    "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "disable_bw", "gtod_reduce",
)  # fmt: skip
_MEASURED_WHY = "fio would report no such values; here latencies and rates are always measured"
_ANY = 2**31  # fio takes each number but 0 as on: `time_based=30`
_FILES = ("fallocate", "create_serialize", "create_fsync", "create_on_open", "unlink", "unlink_each_loop")

_OPTIONS = (
    Option(
        name="rw",
        factor="pattern",
        read=values.read_pattern,
        aliases=("readwrite",),
        meaning=Meaning.SEQUENCE,
        note="rw=read:64k sets skip, rw=read:-8k sets reverse, rw=randread:8 sets run_length",
    ),
    _simple("rwmixread", "read_percent", values.read_percent),
    _simple("rwmixwrite", "read_percent", lambda text: 100 - values.read_percent(text)),
    Option(
        name="bs",
        factor="block_size",
        read=values.read_block_size,
        aliases=("blocksize",),
        note="a second value is that of writes: write_block_size",
    ),
    Option(
        name="bssplit",
        factor="block_split",
        read=values.read_block_split,
        note="a second value is that of writes: write_block_split",
    ),
    Option(name="bsrange", factor="block_range", read=values.read_block_range, aliases=("blocksize_range",)),
    *(
        Option(
            name=name,
            factor=name,
            read=values.read_directions(name),
            note=f"a second value is that of writes: write_{name}",
        )
        for name in ("rate", "rate_iops", "percentage_random")
    ),
    *(
        Option(
            name=name,
            factor=name,
            read=values.read_size_or_percent(name),
            aliases=aliases,
            note=f"{name}=50% sets {name}_percent",
        )
        for name, aliases in (("offset", ("fileoffset",)), ("offset_increment", ()))
    ),
    *(
        Option(
            name=name, factor=name, read=values.unless_zero(name, values.read_unchanged), aliases=_ALIASES.get(name, ())
        )
        if name in _OFF_AT_ZERO
        else _simple(name, name, values.read_flag if name in _FLAGS else values.read_unchanged, *_ALIASES.get(name, ()))
        for name in _SAME
    ),
    _simple("random_distribution", "random_distribution", values.read_distribution),
    Option(
        name="norandommap",
        factor="norandommap",
        read=values.read_off("norandommap"),
        note="of a job without it that ends by an amount, norandommap is off",
    ),
    Option(
        name="random_generator", factor="norandommap", read=values.read_generator, note="lfsr sets norandommap: off"
    ),
    Option(name="invalidate", factor="invalidate", read=values.read_off("invalidate"), note="fio's default is 1"),
    Option(name="verify", factor="verify", read=values.read_verify, note="crc32c-intel is crc32c"),
    Option(
        name="loops",
        factor="amount",
        read=values.read_number(1, 1_000_000),
        note="multiplies the amount or the passes",
    ),
    Option(name="prioclass", factor="ionice", read=values.read_number(0, 3)),
    Option(name="prio", factor="ionice", read=values.read_number(0, 7)),
    _simple("numa_cpu_nodes", "numa_node", values.read_node),
    _several("numa_mem_policy", values.read_anything, "the memory of the node of `numa_cpu_nodes` is used"),
    Option(name="ioengine", factor="ioengine", read=values.read_engine),
    *(
        _simple(n, n, values.read_switch)
        for n in ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored")
    ),
    _simple("numjobs", "numjobs", values.read_count),
    _simple("iodepth", "iodepth", values.read_count),
    _simple("direct", "direct", values.read_switch),
    _simple("buffered", "direct", lambda text: not values.read_switch(text)),
    Option(name="sync", factor="sync", read=values.read_sync),
    _simple("fsync", "fsync_every", values.read_count),
    _simple("end_fsync", "end_fsync", values.read_switch),
    Option(
        name="size",
        factor="size",
        read=values.read_size_or_percent("size"),
        meaning=Meaning.OVER_FILES,
        note="fio's size is that of all files of a job, Sweetspot's of each file; size=70% sets size_percent",
    ),
    Option(
        name="filesize",
        factor="size",
        read=values.read_file_size,
        meaning=Meaning.SEVERAL,
        note="of each file; of a range, all files have the mean size; `size` is then the amount",
    ),
    _simple("nrfiles", "files", values.read_count, "nr_files"),
    Option(name="runtime", factor="runtime", read=values.read_unless_zero_seconds("runtime"), aliases=("timeout",)),
    Option(name="ramp_time", factor="ramp", read=values.read_unless_zero_seconds("ramp")),
    Option(
        name="startdelay",
        factor="before",
        read=values.read_delay,
        aliases=("delay",),
        meaning=Meaning.SEVERAL,
        note="a pause before the trial; the streams of a trial start together",
    ),
    _simple("nice", "nice", values.read_nice),
    _simple("cpus_allowed", "cpus", values.read_cpus),
    _simple("cpumask", "cpus", values.read_cpu_mask),
    _simple("cpus_allowed_policy", "cpus_policy", values.read_cpus_policy),
    Option(
        name="io_size",
        factor="amount",
        read=values.read_as("amount", values.read_size),
        aliases=("io_limit",),
        meaning=Meaning.PER_JOB,
        note="fio's io_size is per job, Sweetspot's amount is the total of all jobs",
    ),
    Option(name="refill_buffers", factor="buffers", read=values.read_buffers_if(Buffers.REFILLED)),
    Option(name="zero_buffers", factor="buffers", read=values.read_buffers_if(Buffers.ZEROES)),
    Option(name="scramble_buffers", factor="buffers", read=values.read_buffers_if(Buffers.REPEATED, when=False)),
    Option(
        name="overwrite",
        factor="prefill",
        read=lambda text: {"prefill": values.read_switch(text)},
        note="writing jobs without it use new files: prefill is off",
    ),
    _several("time_based", values.read_number(0, _ANY), "a trial with a runtime always uses the whole runtime"),
    _several("group_reporting", values.read_number(0, _ANY), "the jobs of a stream are reported together"),
    _several("filename", values.read_anything, "the target is chosen when a run is started"),
    _several("directory", values.read_anything, "the target is chosen when a run is started"),
    _several("filename_format", values.read_anything, "the target is chosen when a run is started"),
    _several("stonewall", values.read_anything, "the job starts a new part of the plan", "wait_for_previous"),
    _several("wait_for", values.read_anything, "the job starts a new part, if it waits for all jobs before it"),
    _several("exitall", values.read_anything, "the streams of a trial end by themselves"),
    _several("do_verify", values.read_number(0, 1), "data is read back whenever `verify` is given"),
    _several("name", values.read_anything, "the name of the job"),
    _several("description", values.read_anything, "the text is in the plan's note"),
    _several("kb_base", values.read_kb_base, "1000 or 1024: the meaning of k, m and g"),
    _several("thread", values.read_number(0, _ANY), "jobs are processes, fio's default"),
    _fixed("create_only", "0", why="a trial must measure something"),
    _fixed("continue_on_error", "none", "0", why="an I/O error ends the trial"),
    _fixed("thinktime_blocks_type", "complete", why="pauses are counted in completed I/Os"),
    *_left_out(*_LOGS, why=_LOGS_WHY),
    *_left_out(*_MEASURED, why=_MEASURED_WHY, default="0"),
    *_left_out("stats", why=_MEASURED_WHY, default="1"),
    *_left_out("gtod_cpu", "clocksource", why="fio's default clock is used"),
    *_left_out(*_FILES, why="Sweetspot creates, fills and removes the files of a directory target"),
    *_left_out("allow_file_create", "unique_filename", why="only the files of a directory target are ever created"),
    *_left_out("randrepeat", "randseed", "allrandrepeat", why="the plan sets the seed"),
    *_left_out("softrandommap", why="fio's default is used"),
    *_left_out("verifysort", "verifysort_nr", "experimental_verify", why="fio's default is used"),
    *_left_out("exit_what", why="the streams of a trial end by themselves"),
    *_left_out("new_group", why="each stream is reported by itself"),
    *_left_out("unit_base", why="all values are stored in bytes"),
    *_left_out("verify_dump", "verify_state_save", "write_iolog", why="no file is written on the host"),
    *_left_out("threads", why="fio ignores it too: it is an option of the profile tiobench"),
    *_left_out("exitall_on_error", why="when a job fails, the trial fails"),
    *_left_out("mem_align", "iomem_align", why="fio's default alignment is used"),
)

ALLOWED: Mapping[str, Option] = {name: option for option in _OPTIONS for name in (option.name, *option.aliases)}


# The fio options that Sweetspot refuses, with the reason. Options in neither table are refused without one.

_RUNS = "it runs a program"
_READS = "it reads a file of the host"
_GUARD = "the worker's guard decides what may be used"
_LIMITS = "the worker sets the limits of fio's processes"
_FLOW = (
    "it keeps the I/Os of several jobs in a ratio, but the streams of a trial run freely. Use `rate_iops` in each job"
)
_FULL = "it writes until the device is full. Give a size"
_ENDS = "a slow drive is a result, and must not end the trial. Use `rate` or `rate_iops`"
_ERRORS = "an I/O error ends the trial"
_ZONES = "zoned drives are not supported. For strides, write `rw=read:64k`"
_REPLAY = "recorded I/O cannot be replayed"
_MEMORY = "fio's default memory is used"
_VERIFY = "only data that the same trial has written is verified"

# Of fio 3.33: `fio --enghelp=ENGINE` and the options in its manual.
OF_OTHER_ENGINES = (
    "cmd_type", "cpuload", "cpuchunks", "cpumode", "exit_on_io_done", "hostname", "bindname", "port", "protocol",
    "proto", "interface", "ttl", "nodelay", "listen", "pingpong", "window_size", "mss", "verb", "stat_type", "program",
    "arguments", "grace_time", "std_redirect", "donorname", "inplace", "volume", "brick", "single-instance", "skip_bad",
    "uri", "clustername", "rbdname", "pool", "clientname", "conf", "busy_poll", "touch_objects", "namenode",
    "hdfsdirectory", "chunk_size", "object_class", "cont", "nfs_url", "gpu_dev_ids", "cuda_io", "http_host",
    "http_user", "http_pass", "https", "http_mode", "http_s3_region", "http_s3_key", "http_s3_keyid",
    "http_s3_sse_customer_key", "http_s3_sse_customer_algorithm", "http_s3_storage_class", "http_swift_auth_token",
    "http_verbose", "xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec",
)  # fmt: skip

_REASONS = {
    _RUNS: ("exec_prerun", "exec_postrun"),
    _READS: ("read_iolog", "read_iolog_chunked", "verify_state_load", "opendir"),
    _REPLAY: (
        "replay_no_stall", "replay_redirect", "replay_scale", "replay_align", "replay_time_scale", "replay_skip",
        "merge_blktrace_file", "merge_blktrace_scalars", "merge_blktrace_iters",
    ),
    _GUARD: ("allow_mounted_write",),
    _LIMITS: ("cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid", "lockmem"),
    _FLOW: ("flow", "flow_id", "flow_watermark", "flow_sleep"),
    _FULL: ("fill_device", "fill_fs"),
    "it writes past the end of the file": ("file_append",),
    "the jobs would wait for each other": ("lockfile",),
    "it replaces the job's options": ("profile",),
    _ENDS: ("rate_min", "ratemin", "rate_iops_min", "rate_cycle", "ratecycle"),
    _ERRORS: ("ignore_error",),
    _ZONES: (
        "zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones",
        "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency",
    ),
    _MEMORY: ("mem", "iomem", "hugepage-size"),
    _VERIFY: ("verify_only",),
    "the checksum is always at the start of its block": ("verify_offset",),
    "the threads that verify share the CPUs of `cpus_allowed`": ("verify_async_cpus",),
    "trims are patterns of their own: `rw=trim` or `rw=trimwrite`": (
        "trim_percentage", "trim_backlog", "trim_backlog_batch",
    ),
    "trimmed blocks are not read back": ("trim_verify_zero",),
    "it changes the drive for all programs. Use the factor `scheduler`": ("ioscheduler",),
    "a trial ends by `runtime`, by an amount or by a stop rule of the plan": (
        "steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp", "number_ios",
    ),
    "random offsets are multiples of the smallest block": ("bs_unaligned", "blocksize_unaligned"),
    "the two sizes would be those of sequential and random I/Os. Give sizes of reads and writes": ("bs_is_seq_rand",),
    "give `offset` in bytes": ("offset_align",),
    "priorities of single I/Os are not reported. Use `prio` and `prioclass`": (
        "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit", "cmdprio_hint",
    ),
    "the number of duplicates would depend on the number of jobs": ("dedupe_global",),
    "not all kernels and versions of fio support it": (
        "write_hint", "atomic", "write_barrier", "barrier", "uncached", "nowait", "hipri_percentage",
    ),
    "sg reads and writes with the plain commands READ and WRITE": (
        "sg_write_mode", "readfua", "writefua", "stream_id",
    ),
    "huge pages for mmap are not supported": ("thp",),
    "it belongs to an I/O engine that Sweetspot does not run": OF_OTHER_ENGINES,
}  # fmt: skip
REFUSED: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names}

# Values of refused options that are fio's default, which job files often write out.
DEFAULTS: Mapping[str, str] = dict.fromkeys(
    (
        "fill_device", "fill_fs", "file_append", "rate_min", "rate_iops_min", "zonesize", "zonerange", "zoneskip",
        "verify_only", "verify_offset", "trim_percentage", "trim_verify_zero", "trim_backlog", "number_ios",
        "bs_unaligned", "blocksize_unaligned", "bs_is_seq_rand", "offset_align", "cmdprio_percentage", "dedupe_global",
        "atomic", "uncached", "nowait", "replay_no_stall", "verify_state_load", "allow_mounted_write",
        "read_iolog_chunked", "flow", "lockmem", "ratemin", "readfua", "writefua", "stream_id", "thp",
    ),
    "0",
) | {
    "zonemode": "none", "lockfile": "none", "mem": "malloc", "rate_cycle": "1000", "ratecycle": "1000",
    "sg_write_mode": "write",
}  # fmt: skip
