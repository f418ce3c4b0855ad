"""Options of fio's jobs as factors: those that plans know; the others stay text. Shared by fio's JSON and its text."""

from collections.abc import Mapping, Set

from webapp.imports.values import sorted_factors
from webapp.plans.values import Value
from worker.contract.workload import Pattern
from worker.recipes.fio.option_values import OptionRefused, sequence
from worker.recipes.fio.options import ALLOWED

# What fio uses where an option is not given (HOWTO). The default of `ioengine` changed between versions.
DEFAULTS: Mapping[str, Value] = {
    "pattern": "read",
    "block_size": 4096,
    "iodepth": 1,
    "numjobs": 1,
    "direct": False,
}
# Options that say where fio writes and how it prints: they do not affect the measurement.
_SILENT = {"group_reporting", "name", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"} | {
    "log_avg_msec",
    "log_hist_msec",
    "per_job_logs",
    "stonewall",
    "output-format",
    "output",
}
_COMBINED = ("loops", "prio", "prioclass")  # a plan's reader combines them with other options
_OF_PLANS = ("startdelay", "delay", "overwrite")  # how a plan does the same is no factor of a result
_OF_BOTH = ("block_size", "block_split", "rate", "rate_iops")  # factors with a separate value of writes

_MAX_NAME, _MAX_TEXT = 100, 500  # `filename` may list hundreds of files


def factors(options: Mapping[str, str], unknown: Set[str] = frozenset()) -> tuple[dict[str, Value], dict[str, str]]:
    """The factors of a job, and the options without a factor. Without any option fio says nothing, so neither do we.
    `unknown` are factors whose options are not all stated, so that fio's default must not be assumed."""
    if not options:
        return {}, {}
    stated: dict[str, Value] = {}
    other: dict[str, str] = {}
    for name, text in options.items():
        try:
            read = {} if name in _OF_PLANS else ALLOWED[name].read(text)
        except (KeyError, ValueError):  # no factor, or a value without one: ranges, percentages, other engines
            other[name] = text
            continue
        stated |= read
        if (not ALLOWED[name].factor and name not in _SILENT) or name in (*_COMBINED, *_OF_PLANS):
            other[name] = text
    if "numjobs" in unknown and "numjobs" not in stated and stated.pop("amount", None):  # per job
        other |= {name: options[name] for name in ("io_size", "io_limit") if name in options}
    _whole_job(stated, other, options)
    known = [name for name in DEFAULTS if name not in unknown]
    stated = {name: DEFAULTS[name] for name in known if not _given(name, stated, other)} | stated
    known_factors, refused = sorted_factors(stated)
    unread = {name[:_MAX_NAME]: text[:_MAX_TEXT] for name, text in other.items() if name not in _SILENT}
    return known_factors, unread | refused


def assumed(options: Mapping[str, str], known_factors: Mapping[str, Value]) -> frozenset[str]:
    """Those of the factors that are fio's defaults, because no option sets them."""
    return frozenset(name for name in DEFAULTS if name in known_factors and _OPTIONS_OF[name].isdisjoint(options))


def _whole_job(stated: dict[str, Value], other: dict[str, str], options: Mapping[str, str]) -> None:
    """fio's size is the total of a job's files and its io_size is per job; ours are per file and in all. A pattern
    whose I/Os neither follow each other nor skip blocks has no factor."""
    _separate(stated)
    gap = stated.pop("skip", None)
    try:
        stated |= sequence(gap, int(stated.get("block_size") or 4096)) if isinstance(gap, int) else {}
    except OptionRefused:
        stated.pop("pattern")
        other |= {name: options[name] for name in _OPTIONS_OF["pattern"] if name in options}
    jobs, files = int(stated.get("numjobs") or 1), int(stated.get("files") or 1)
    if isinstance(stated.get("size"), int) and files:
        stated["size"] = int(stated["size"] or 0) // files
    if "file_size" in stated:
        stated["size"] = stated.pop("file_size")
    if isinstance(stated.get("amount"), int):
        stated["amount"] = int(stated["amount"] or 0) * jobs
    if not stated.keys().isdisjoint(_SEVERAL_SIZES):
        stated.pop("block_size", None)
        stated.pop("write_block_size", None)


def _separate(stated: dict[str, Value]) -> None:
    """A pattern that does not mix has only one of the separate values of reads and writes."""
    pattern = Pattern(str(stated.get("pattern", Pattern.READ)))
    for name in () if pattern.mixed else _OF_BOTH:
        of_writes = stated.pop(f"write_{name}", None)
        if of_writes is not None and pattern.writes:
            stated[name] = of_writes


_SEVERAL_SIZES = ("block_split", "block_range")  # instead of a block size
_OPTIONS_OF = {
    "pattern": {"rw", "readwrite"},
    "block_size": {"bs", "blocksize", "bsrange", "blocksize_range", "bssplit"},
    "iodepth": {"iodepth"},
    "numjobs": {"numjobs"},
    "direct": {"direct", "buffered"},
}


def _given(name: str, stated: Mapping[str, Value], other: Mapping[str, str]) -> bool:
    """Whether an option sets the factor, even to a value that no factor has."""
    if name == "block_size" and not stated.keys().isdisjoint(_SEVERAL_SIZES):
        return True
    return any(option in other for option in _OPTIONS_OF[name])
