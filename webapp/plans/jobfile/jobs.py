"""Reads one job of a fio job file into the factors of a part or of a stream.

Options must be on the worker's allowlist; others are refused by name. Missing options get fio's defaults (sequential
reads, psync, buffered, with hints to the kernel), not Sweetspot's, so that the plan measures the same as the file. Each
option sets a factor, is what every trial does, or is named in `notes`, the differences from fio.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from webapp.plans.engines import fio
from webapp.plans.engines.fio import MAX_PASSES
from webapp.plans.factors import ALTERNATIVES, FACTORS
from webapp.plans.jobfile.lines import JobProblem, Line, Section
from webapp.plans.points import applicable, with_defaults
from webapp.plans.values import BlockRange, BlockSplit, Value, ValueRefused
from worker.contract.workload import Buffers, IoEngine, Pattern
from worker.recipes.fio.option_values import (
    OptionRefused,
    in_bytes,
    is_engine,
    misread_time,
    opposite_units,
    read_count,
    sequence,
)
from worker.recipes.fio.options import ALLOWED, DEFAULTS, OF_OTHER_ENGINES, REFUSED, Meaning, Option
from worker.recipes.fio.problems import NEEDS

GROUPING = ("part", "on", "stream", "streams_on")  # properties of a section that are not factors
_FIO_DEFAULTS: Mapping[str, Value] = {"pattern": "read", "ioengine": "psync", "direct": False}
_OF_BOTH = ("block_size", "block_split", "rate", "rate_iops", "percentage_random")  # with a separate value of writes
_OF_QUEUE = ("iodepth", "iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low")
_LAST_WINS = ("read_percent", "direct", "cpus")  # factors of which fio has several options
_TIMES = (
    "runtime", "ramp_time", "startdelay", "thinktime", "thinktime_spin", "thinktime_iotime", "latency_target",
    "latency_window", "max_latency",
)  # fmt: skip
_TEXTS = (*_TIMES, "verify_pattern", "buffer_pattern")  # without units of size
_FILE_SIZE = "file_size"  # what `filesize` sets, until `size` is known
_SECTOR = 512


@dataclass
class Job:
    """The options of a section, while it is read."""

    section: Section
    problems: list[JobProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # differences from fio
    values: dict[str, Value] = field(default_factory=dict)  # factor -> stored value
    given: dict[str, Line] = field(default_factory=dict)  # option -> its last line
    sources: dict[str, Line] = field(default_factory=dict)  # factor -> the line that set it
    set_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # option -> the factors that it set
    complete: bool = True  # False: an option lacks the value of a variable, or an included file is missing

    @property
    def name(self) -> str:
        return (self.given["name"].value if "name" in self.given else "") or self.section.name

    @property
    def stonewalled(self) -> bool:
        return self.text("stonewall", "0") != "0"

    @property
    def jobs(self) -> int:
        return int(self.values.get("numjobs") or 1)

    @property
    def pattern(self) -> Pattern:
        return Pattern(str(self.values["pattern"]))

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of its files; () if fio would make them from the job's name."""
        names = self.text("filename").replace("\\:", "\0").split(":")
        folder = self.text("directory").rstrip("/") + "/" if self.text("directory") else ""
        return tuple(_path(folder, name.replace("\0", ":")) for name in names if name)

    @property
    def on_devices(self) -> bool:
        return bool(self.file_names) and all(_is_device(name) for name in self.file_names)

    @property
    def shares_files(self) -> bool:
        """Whether the processes of the job use the same files: by default, each has its own."""
        return bool(self.file_names) or (
            "filename_format" in self.given and "$jobnum" not in self.text("filename_format")
        )

    def text(self, option: str, otherwise: str = "") -> str:
        """The value of an option as written."""
        return self.given[option].value if option in self.given else otherwise

    def line_of(self, name: str) -> int:
        return self.given[name].number if name in self.given else self.section.number

    def refuse(self, option: str, message: str) -> None:
        self.problems.append(JobProblem(self.line_of(option), option, message))


def _path(folder: str, name: str) -> str:
    return name if name.startswith("/") else folder + name


def _is_device(name: str) -> bool:
    return name.startswith("/dev/") and not name.startswith("/dev/shm/")  # noqa: S108 - a folder, only compared


def read_job(section: Section) -> Job:
    """A section's factors; its errors are in `problems`."""
    job = Job(section, complete=all(line.complete for line in section.lines))
    kb_base = 1000 if any((line.option, line.value) == ("kb_base", "1000") for line in section.lines) else 1024
    for option, line in _last_lines(job).items():
        if line.complete:
            _take(job, ALLOWED[option], line, kb_base)
    if not job.problems and job.complete:
        job.values = dict(_FIO_DEFAULTS) | job.values
        _whole(job)
    if section.stated:
        job.notes.clear()  # written by Sweetspot: no differences from fio
        _stated(job)
    return job


def _stated(job: Job) -> None:
    """Sweetspot's comments override fio's options and their alternatives."""
    for line in job.section.stated:
        if line.option in GROUPING:
            continue
        try:
            if line.option not in FACTORS:
                raise ValueRefused(f"there is no factor `{line.option}`")
            job.values[line.option] = FACTORS[line.option].values.parse(line.value)
        except ValueError as error:
            job.problems.append(JobProblem(line.number, line.option, f"is refused: {str(error)[:300]}."))
    for first, second in ALTERNATIVES:
        for wins, loses in ((first, second), (second, first)):
            if wins in job.values and any(line.option == wins for line in job.section.stated):
                job.values.pop(loses, None)


def _last_lines(job: Job) -> dict[str, Line]:
    """Option -> its effective line: the last one, under any of its names."""
    last_lines: dict[str, Line] = {}
    engine = next((line.value for line in reversed(job.section.lines) if line.option == "ioengine"), "psync")
    for line in job.section.lines:
        option = ALLOWED.get(line.option)
        if option is None:
            default = DEFAULTS.get(line.option) == line.value
            of_engine = not is_engine(engine) and line.option not in REFUSED.keys() - {*OF_OTHER_ENGINES}
            if line.complete and not default and not of_engine:  # the refused engine is the cause
                job.problems.append(JobProblem(line.number, line.option, _not_supported(line.option)))
            continue
        last_lines.pop(option.name, None)
        last_lines[option.name] = line
        job.given[option.name] = line
    return last_lines


def _not_supported(option: str) -> str:
    if option in REFUSED:
        return f"is not supported by Sweetspot: {REFUSED[option]}. Remove it."
    like = get_close_matches(option, ALLOWED, n=1, cutoff=0.85)
    return f"is not an option of fio 3.33. {f'Did you mean `{like[0]}`?' if like else 'Remove it.'}"


def _take(job: Job, option: Option, line: Line, kb_base: int) -> None:
    try:
        text = line.value if option.name in _TEXTS else in_bytes(line.value, kb_base)
        levels = option.read(text)
        for factor, value in levels.items():
            _set(job, factor, _checked(factor, value, option), line)
        job.set_by[option.name] = tuple(levels)
        job.notes += _misread(option, line, kb_base)
    except ValueError as error:  # OptionRefused, ValueRefused, or more digits than Python converts to a number
        words = str(error) if not isinstance(error, UnicodeError) else "cannot be read"
        where = f" ({line.file})" if line.file else ""
        job.problems.append(JobProblem(line.number, line.option, f"is refused: {words[:300]}.{where}"))


def _misread(option: Option, line: Line, kb_base: int) -> list[str]:
    """Values that do not mean in fio what they mean elsewhere."""
    if option.name in _TIMES and (microseconds := misread_time(line.value)) is not None:
        return [f"`{option.name}={line.value}` would be {microseconds} µs in fio, which does not know this unit"]
    if kb_base == 1024 and option.meaning is not Meaning.LEFT_OUT and option.name not in _TEXTS:
        return [
            f"`{size}` is {in_bytes(size)} bytes, as in fio without `kb_base=1000`"
            for size in opposite_units(line.value)
        ]
    return []


def _checked(factor: str, value: Value, option: Option) -> Value:
    """Check the factor's limits, except for sizes that are still to be divided among files."""
    if factor == _FILE_SIZE or (option.meaning in (Meaning.PER_JOB, Meaning.OVER_FILES) and factor != "size_percent"):
        if not isinstance(value, int) or not 0 < value <= 2**60:
            raise ValueRefused("the size is not possible")
        return value
    if option.meaning is Meaning.SEQUENCE and factor == "skip":
        return value
    return FACTORS[factor].values.parse(value if isinstance(value, str) else FACTORS[factor].values.write(value))


def _set(job: Job, factor: str, value: Value, line: Line) -> None:
    if factor in job.values and job.values[factor] != value and factor not in _LAST_WINS:
        other = job.sources[factor].option
        job.problems.append(JobProblem(line.number, line.option, f"contradicts `{other}`: remove one of them."))
        return
    job.values[factor] = value
    job.sources[factor] = line


def _whole(job: Job) -> None:
    """Values that depend on the whole job: order of offsets, sizes of files, amounts, depth, the end."""
    for step in (
        _blocks,
        _mix,
        _data,
        _depth,
        _sequence,
        _priority,
        _files,
        _sizes,
        _regions,
        _end,
        _map,
        _caches,
        _others,
    ):
        step(job)


def _blocks(job: Job) -> None:
    """bssplit overrides bsrange, and both override bs, as in fio."""
    if "block_split" in job.values:
        job.values.pop("block_range", None)
    if "block_split" in job.values or "block_range" in job.values:
        job.values.pop("block_size", None)
        job.values.pop("write_block_size", None)


def _mix(job: Job) -> None:
    """If the pattern does not mix, separate values of reads and writes become a single value. Options of other patterns
    have no effect, and neither have those that need another option."""
    for name in _OF_BOTH if not job.pattern.mixed else ():
        of_writes = job.values.pop(f"write_{name}", None)
        if of_writes is not None and job.pattern.writes:
            job.values[name] = of_writes
            if name == "block_size" and job.pattern.random:
                job.notes.append("fio would keep its map of visited blocks in units of the block of reads, too")
    if "write_percentage_random" in job.values:
        job.values.setdefault("percentage_random", 100)
    for name in fio.silent(job.values):
        job.values.pop(name, None)
    for name, needed in NEEDS.items():
        if job.values.keys().isdisjoint(needed.split(" or ")):
            job.values.pop(name, None)


def _data(job: Job) -> None:
    """As in fio, data that is compressible or has duplicates is made anew for every I/O; a pattern never changes."""
    made = not {"dedupe_percentage", "buffer_compress_percentage"}.isdisjoint(job.values)
    if made and "refill_buffers" not in job.given:
        job.values.setdefault("buffers", Buffers.REFILLED.value)
    if "buffer_pattern" in job.values and not made:
        job.values.setdefault("buffers", Buffers.REPEATED.value)


def _depth(job: Job) -> None:
    """An engine without a queue has one I/O in flight, and so has libaio without direct I/O. As fio does, batches are
    at most as large as the depth."""
    engine = IoEngine(str(job.values["ioengine"]))
    buffered_aio = engine is IoEngine.LIBAIO and not job.values["direct"]
    depth = int(job.values.get("iodepth") or 1)
    if engine.asynchronous and not buffered_aio:
        for name in _OF_QUEUE[1:]:
            if name in job.values:
                job.values[name] = min(int(job.values[name] or 0), depth)
        return
    named = [name for name in _OF_QUEUE if job.values.pop(name, None) is not None and job.text(name) != "1"]
    if named:
        without = "libaio without `direct=1`" if buffered_aio else str(engine)
        job.notes.append(f"{_listed(named)} without effect: {without} has one I/O in flight")


def _sequence(job: Job) -> None:
    gap = job.values.pop("skip", None)
    if not isinstance(gap, int):
        return
    try:
        job.values |= sequence(gap, int(job.values.get("block_size") or FACTORS["block_size"].default or 0))
    except OptionRefused as refused:
        job.refuse("rw", str(refused))


def _priority(job: Job) -> None:
    """fio's prioclass and prio are one factor."""
    lines = {name: job.given[name].value for name in ("prioclass", "prio") if name in job.given}
    kind = {"1": "rt", "2": "be", "3": "idle"}.get(lines.get("prioclass", "2").strip(), "none")
    if lines:
        job.values["ionice"] = f"{kind}/{read_count(lines.get('prio', '0'))}" if kind in ("rt", "be") else kind


def _files(job: Job) -> None:
    """`filename=a:b` is two files, whatever `nrfiles` says."""
    names = job.file_names
    if not names:
        return
    if job.values.pop("files", len(names)) != len(names):
        job.notes.append(f"`nrfiles` without effect: `filename` names {len(names)}")
    if len(names) == 1:
        return
    if any(map(_is_device, names)):
        job.refuse(
            "filename", "names several devices, which the job would use in turn: give each device a job of its own."
        )
    job.values["files"] = len(names)


def _block_ends(job: Job) -> tuple[int, int]:
    """The smallest and the largest block."""
    values = job.values
    sizes = [int(values.get(name) or 4096) for name in ("block_size", "write_block_size") if name in values] or [4096]
    splits = [values[name] for name in ("block_split", "write_block_split") if name in values]
    sizes = [size for split in splits for size, _ in BlockSplit().shares(split)] or sizes
    if "block_range" in values:
        sizes = [*BlockRange().ends(values["block_range"])]
    return min(sizes), max(sizes)


def _sizes(job: Job) -> None:
    """fio's size is the total of one job's files, and by default each job has files of its own. Sweetspot's is the size
    of each file, and all jobs share the files, so files of the same total size are used."""
    values, files = job.values, int(job.values.get("files") or 1)
    of_files, total = values.pop(_FILE_SIZE, None), values.get("size")
    if of_files is not None and "-" in job.text("filesize"):
        job.notes.append(f"the files would have random sizes of {job.text('filesize')}; here all have the mean size")
    if isinstance(of_files, int):
        values["size"] = of_files
        moved = min(total, of_files * files) if isinstance(total, int) else of_files * files
        values.setdefault("amount", moved)
    elif isinstance(total, int):
        values["size"] = total // files
        values.setdefault("amount", total)
    else:
        return
    smallest, largest = _block_ends(job)
    step = _SECTOR if job.pattern.random else math.lcm(_SECTOR, smallest)
    each, wanted = int(values["size"] or 0) // step * step, int(values["size"] or 0)
    if each < largest:
        option = "size" if of_files is None else "filesize"
        job.refuse(option, f"gives each file {wanted} bytes, less than a block of {largest} bytes.")
        return
    if each < wanted:
        job.notes.append(
            f"each file has {each} bytes instead of {wanted}, a multiple of the block and of {_SECTOR} bytes"
        )
        if values["amount"] == total:
            values["amount"] = each * files
    has_own_files = job.jobs > 1 and not job.shares_files and not values.get("offset_increment")
    values["size"] = min(each * job.jobs if has_own_files else each, 2**60)
    if has_own_files:
        job.notes.append("fio's jobs would have files of their own; here they share files of the same total size")


def _regions(job: Job) -> None:
    """By default, fio's jobs all start at the same offset of a file that they share."""
    values = job.values
    if job.jobs == 1 or job.pattern.random:
        pass
    elif not {"offset_increment", "offset_increment_percent"} & values.keys():
        if job.shares_files:
            values["offset_increment"] = 0
    else:
        _join(job, values)
    if values.get("size_percent") == 100:
        del values["size_percent"]
        job.set_by.pop("size", None)


def _join(job: Job, values: dict[str, Value]) -> None:
    """Regions of sequential jobs that follow each other are the equal parts of one region, as without the option."""
    for size, increment, largest in (
        ("size", "offset_increment", 2**60),
        ("size_percent", "offset_increment_percent", 100),
    ):
        part = values.get(size)
        if isinstance(part, int) and part == values.get(increment) and part * job.jobs <= largest:
            values[size] = part * job.jobs
            del values[increment]
            job.set_by.pop("offset_increment")


def _end(job: Job) -> None:
    """A run time, an amount, or without either fio's default: every job goes through its size once in each loop."""
    values, amount = job.values, job.values.pop("amount", None)
    loops = read_count(job.text("loops") or "1")
    timed = job.text("time_based", "0") != "0"
    if "runtime" in values:
        if "io_size" in job.given and not timed:
            job.refuse("runtime", "and `io_size` are both given, and fio ends at the first: remove one of them.")
        elif "io_size" in job.given:
            job.notes.append("`io_size` without effect: with `time_based`, the run time ends the job")
        elif not timed:
            job.notes.append("without `time_based` fio would end early once every job has gone through its size")
        if "loops" in job.given:
            job.notes.append("`loops` without effect: the run time ends the job")
        return
    if values.get("ramp"):
        job.refuse("ramp_time", "needs a runtime: the bytes moved during the ramp would be missing from the amount.")
    elif isinstance(amount, int):
        values["amount"] = min(amount * job.jobs * loops, 2**60)
        if loops > 1 and not values["direct"] and values.get("invalidate") is not False:
            job.notes.append(
                "fio would drop the files from the page cache before each loop; here only before the first"
            )
    elif loops > MAX_PASSES:
        job.refuse("loops", f"of a size in percent or a whole device are at most {MAX_PASSES}.")
    elif "size" in job.given or job.file_names:
        values["passes"] = loops
    else:
        words = f"[{job.name}] has neither a size nor a file or device, which fio refuses, too. "
        words += "Give it a size or a runtime."
        job.problems.append(JobProblem(job.section.number, "", words))


def _map(job: Job) -> None:
    """A map of visited blocks matters only if the job ends by an amount: then each block counts once."""
    if not job.pattern.random or "norandommap" in job.given or "norandommap" in job.values:
        return
    if job.values.get("random_distribution", "random") != "random":
        return
    if "runtime" not in job.values:
        job.values["norandommap"] = False
    else:
        job.notes.append("fio would visit every block once before any twice; here every offset is drawn independently")


def _caches(job: Job) -> None:
    """Of buffered I/O, fio tells the kernel the order. New files of a job that only writes are not filled before."""
    if job.values["direct"] or job.values["ioengine"] == IoEngine.SG:
        job.values.pop("fadvise_hint", None)
    else:
        hint = job.values.setdefault("fadvise_hint", "1")
        if hint == "0":  # as in every trial without this factor
            del job.values["fadvise_hint"]
    if job.pattern.reads or not job.pattern.stores or job.on_devices or "size" not in job.values:
        job.values.pop("prefill", None)
    elif not job.values.setdefault("prefill", False) and job.text("fallocate") not in ("none", "0"):
        job.notes.append("fio would allocate the space of new files before the measurement; here it is not allocated")


def _others(job: Job) -> None:
    """The remaining differences between fio and Sweetspot, for the plan's note."""
    if job.text("do_verify", "1") == "0" and "verify" in job.values:
        job.refuse("do_verify", "is refused: data is read back whenever `verify` is given. Remove both.")
    if job.text("thread", "0") != "0" or ("thread" in job.given and not job.text("thread")):
        job.notes.append("`thread` ignored: jobs are processes")
    if job.jobs > 1 and job.text("group_reporting", "1") == "0":
        job.notes.append("`group_reporting=0` ignored: the jobs of a stream are reported together")
    policy, node = job.text("numa_mem_policy"), job.text("numa_cpu_nodes")
    if policy and policy != f"bind:{node}":
        job.notes.append(f"`numa_mem_policy={policy}` ignored: memory is that of `numa_cpu_nodes`, or fio's default")
    if "fadvise_hint" in job.given and job.values["direct"]:
        job.notes.append("`fadvise_hint` ignored: direct I/O does not use the page cache")
    if not job.pattern.stores and (
        names := [name for name, factors in job.set_by.items() if factors and name.startswith("verify")]
    ):
        job.notes.append(f"{_listed(names)} ignored: only data that the same trial has written is verified")
    for name, factors in job.set_by.items():
        used = job.values.keys() & {*factors} or not factors or {*factors} <= {_FILE_SIZE, "skip"}
        if not used and not any(f"`{name}" in note for note in job.notes):
            job.notes.append(f"`{name}` without effect beside the other options")
    by_reason: dict[str, list[str]] = {}
    for name in job.given:
        option = ALLOWED[name]
        if option.meaning is Meaning.LEFT_OUT and job.text(name) != option.default:
            by_reason.setdefault(option.note, []).append(name)
    job.notes += [f"{_listed(names)} ignored: {reason}" for reason, names in by_reason.items()]
    for name in ("filename", "directory", "filename_format"):
        if name in job.given:
            job.notes.append(f"`{name}={job.text(name)}` is left out: a run's targets are chosen when it starts")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def texts(job: Job) -> dict[str, str]:
    """The factors as text for a plan; call it only if there are no problems."""
    return {name: FACTORS[name].values.write(value) for name, value in job.values.items()}


def whole_point(job: Job) -> dict[str, str]:
    """The factors including defaults, so that all points of a part have the same factors."""
    grid = with_defaults({name: (value,) for name, value in job.values.items()}, drop_caches=False)
    point = applicable({name: value for name, (value,) in grid.items()})
    return {name: FACTORS[name].values.write(value) for name, value in point.items()}
