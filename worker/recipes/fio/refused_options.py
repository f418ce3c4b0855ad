"""The fio options that Sweetspot refuses, with the reason. Options in neither table are refused without one."""

from collections.abc import Iterator, Mapping

_RUNS = "it runs a program"
_READS = "it reads a file of the host"
_WRITES = "it writes a file on the host"
_GUARD = "the worker's guard decides what may be used"
_LIMITS = "the worker sets the limits of fio's processes"
_JOBS = "a trial has one workload"
_FULL = "it writes until the device is full. Give a size"
_ENDS = "a slow drive is a result, and must not end the trial. Use `rate` or `rate_iops`"
_ERRORS = "an I/O error ends the trial"
_ZONES = "zoned drives are not supported. For strides, write `rw=read:64k`"
_REPLAY = "recorded I/O cannot be replayed"
_MEMORY = "fio's default memory is used"
_VERIFY = "only data that the same trial has written is verified"

_REASONS = {
    _RUNS: ("exec_prerun", "exec_postrun"),
    _READS: ("include", "read_iolog", "read_iolog_chunked", "verify_state_load", "opendir"),
    _WRITES: ("write_iolog", "verify_dump", "merge_blktrace_file"),
    _REPLAY: (
        "replay_no_stall", "replay_redirect", "replay_scale", "replay_align", "replay_time_scale", "replay_skip",
        "merge_blktrace_scalars", "merge_blktrace_iters",
    ),
    _GUARD: ("allow_mounted_write",),
    _LIMITS: ("cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid", "lockmem"),
    _JOBS: ("wait_for", "flow", "flow_id", "flow_watermark", "flow_sleep"),
    _FULL: ("fill_device", "fill_fs"),
    "it writes past the end of the file": ("file_append",),
    "the jobs would wait for each other": ("lockfile",),
    "it replaces the job's options": ("profile",),
    "the target is chosen when a run is started": ("filename_format", "unique_filename"),
    _ENDS: ("rate_min", "rate_iops_min", "rate_cycle"),
    _ERRORS: ("ignore_error",),
    _ZONES: (
        "zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones",
        "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency",
    ),
    _MEMORY: ("mem", "iomem", "hugepage-size", "iomem_align", "mem_align"),
    _VERIFY: ("verify_only",),
    "the checksum is always at the start of its block": ("verify_offset",),
    "the threads that verify share the CPUs of `cpus_allowed`": ("verify_async_cpus",),
    "trims are patterns of their own: `rw=trim` or `rw=trimwrite`": (
        "trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch",
    ),
    "it changes the drive for all programs. Use the factor `scheduler`": ("ioscheduler",),
    "it leaves out the latency, which is always measured": ("gtod_reduce",),
    "a trial ends by `runtime`, by an amount or by a stop rule of the plan": (
        "steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp", "number_ios",
    ),
    "all blocks are multiples of 512 bytes": ("bs_unaligned", "blocksize_unaligned"),
    "the two sizes would be those of sequential and random I/Os. Give sizes of reads and writes": ("bs_is_seq_rand",),
    "give `offset` in bytes": ("offset_align",),
    "use `cpus_allowed`": ("cpumask",),
    "priorities of single I/Os are not reported. Use `prio` and `prioclass`": (
        "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit", "cmdprio_hint",
    ),
    "the number of duplicates would depend on the number of jobs": ("dedupe_global",),
    "not all kernels and versions of fio support it": (
        "write_hint", "atomic", "write_barrier", "barrier", "uncached", "nowait", "hipri_percentage",
    ),
}  # fmt: skip


def _by_name() -> Iterator[tuple[str, str]]:
    for reason, names in _REASONS.items():
        yield from ((name, reason) for name in names)


REFUSED: Mapping[str, str] = dict(_by_name())
