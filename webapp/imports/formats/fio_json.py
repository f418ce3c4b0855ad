"""fio's JSON output: fio 2.0 to 3.4x, json and json+.

Units: `bw` KiB/s, `bw_bytes` bytes/s, `io_bytes` KiB in 2.x and bytes in 3.x; latencies µs in 2.x and ns in 3.x.
Source: fio's stat.c of these versions (add_ddir_status_json).
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from itertools import islice, pairwise

import msgspec

from webapp.imports.formats.fio_json_document import Document, Flow, Job, decode, has_mean, latency, printed
from webapp.imports.formats.fio_options import DEFAULTS, assumed, factors
from webapp.imports.measurement import MAX_IOPS, Latency, Measurement, with_repeats
from webapp.imports.values import KIB, MAX_CHARACTERS, MS, ImportRefused
from webapp.plans.values import Value
from webapp.results.metrics import CPU_PER_IO
from webapp.results.reading.doubts import BESIDE_JOBS, CONTRADICTION, JOB_ERROR
from worker.contract.items import Direction
from worker.contract.workload import Pattern

# The runs of fio in a text: each prints one object, or with --status-interval one at each interval.
#
# The last object of a run has its result. Runs that were appended to one file look like the intervals of one run,
# because the counters of an interval are never below those of the interval before. What tells them apart:
#
# - Another version, other jobs or other options are another run.
# - A job that has ended has exactly the same values in all later objects of its run.
# - Another run began, at `timestamp` - `elapsed`, after this one had ended. `elapsed` is up to 1.1 s too long.
# - Counters of one run do not go back, except at the end of `ramp_time`.
# - An object of the same run shows a longer runtime than the time since the object before. A later run began after that
#   object was printed, so its runtime is shorter.
#
# If nothing of this is known for sure, both are objects of one run.

MAX_BRACKETS = 250_000  # fio prints one for about 160 characters
MAX_VALUES = 1_000_000  # more of them take more than 200 MB of memory
_BEGIN = re.compile(r"^[>$#|]?\{", re.MULTILINE)  # inner objects are indented; a sign of a shell may stand before it
_END = re.compile(r"^\}", re.MULTILINE)
_NOT_JSON = re.compile(r"(:\s*)[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_TOO_LONG_S = 1.5  # of `elapsed`


class Run(msgspec.Struct, frozen=True):
    document: Document  # its last object
    notes: tuple[str, ...] = ()  # about the objects of the text


class _Objects(msgspec.Struct):
    last: Document
    count: int = 1
    cut_off: bool = False  # an object after `last` is cut off or damaged


def find(text: str) -> list[Run]:
    """The runs in a text that may contain other lines. Raises ImportRefused."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The text has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Split the file.")
    if text.count("{") + text.count("[") > MAX_BRACKETS:
        raise ImportRefused(f"The JSON has more than {MAX_BRACKETS:,} objects and lists. Split the file.")
    if text.count(",") > MAX_VALUES:
        raise ImportRefused(f"The JSON has more than {MAX_VALUES:,} values. Split the file.")
    try:
        document = decode(text)
    except msgspec.MsgspecError:
        return _with_notes(_objects(_NOT_JSON.sub(r"\g<1>null", text)))
    if not document.is_result:
        raise ImportRefused("The JSON has no `jobs` and no `client_stats`: it is not a result of fio.")
    return [Run(document)]


def _objects(text: str) -> list[_Objects]:
    """Of each run. Raises ImportRefused."""
    runs: list[_Objects] = []
    problem = "This is not a result of fio: no line begins with `{`."
    for part in _parts(text):
        try:
            document = decode(part)
        except msgspec.ValidationError as error:
            raise ImportRefused(f"This is not a result of fio: {str(error)[:200]}.") from error
        except msgspec.DecodeError as error:
            problem = f"The last JSON object is damaged or truncated: {str(error)[:200]}."
            if runs:
                runs[-1].cut_off, runs[-1].count = True, runs[-1].count + 1
            continue
        if not document.is_result:
            problem = "The JSON has no `jobs` and no `client_stats`: it is not a result of fio."
        elif runs and not is_new_run(runs[-1].last, document):
            runs[-1] = _Objects(document, runs[-1].count + 1)
        else:
            runs.append(_Objects(document))
    if not runs:
        raise ImportRefused(problem)
    return runs


def _parts(text: str) -> Iterator[str]:
    begins = [match.end() - 1 for match in _BEGIN.finditer(text)]
    for begin, after in pairwise([*begins, len(text)]):
        end = _END.search(text, begin, after)
        yield text[begin : (end.start() if end else text.rfind("}", begin, after)) + 1]


def is_new_run(before: Document, after: Document) -> bool:
    """Whether an object is of another run than the object before it in the file."""
    if _identity(before) != _identity(after):
        return True
    pairs = [*zip(_flows(before), _flows(after), strict=False)]
    if any(earlier == later for earlier, later in pairs if earlier.active):
        return False
    has_ramp = any("ramp_time" in options for options in (after.global_options, *(job.options for job in _jobs(after))))
    if not has_ramp and any(_goes_back(earlier, later) for earlier, later in pairs):
        return True
    apart = _are_apart(before, after)
    if apart is not None:
        return apart
    return not has_ramp and _is_too_short(before, after)


def _jobs(document: Document) -> list[Job]:
    """Clients print in any order."""
    return document.jobs or sorted(document.client_stats, key=lambda job: (job.hostname, job.jobname))


def _flows(document: Document) -> list[Flow]:
    return [flow for job in _jobs(document) for flow in (job.read, job.write, job.trim, job.mixed)]


def _identity(document: Document) -> object:
    jobs = [(job.jobname, job.groupid, job.hostname, job.options) for job in _jobs(document)]
    return document.version, document.global_options, jobs


def _are_apart(before: Document, after: Document) -> bool | None:
    """Whether one of two runs began after the other one had ended. None if their times are not known or too short."""
    ends_s = [_time_s(document) for document in (before, after)]
    lengths_s = [_elapsed_s(document) for document in (before, after)]
    too_long_s = _TOO_LONG_S if before.timestamp_ms and after.timestamp_ms else _TOO_LONG_S + 1
    if ends_s[0] is None or ends_s[1] is None or lengths_s[0] is None or lengths_s[1] is None:
        return None
    if lengths_s[0] < 2 * too_long_s:
        return None
    return ends_s[1] - lengths_s[1] >= ends_s[0] - too_long_s or ends_s[0] - lengths_s[0] >= ends_s[1] - too_long_s


def _goes_back(before: Flow, after: Flow) -> bool:
    """Whether a counter that only grows is smaller."""
    return after.io_bytes < before.io_bytes or after.runtime < before.runtime


def _is_too_short(before: Document, after: Document) -> bool:
    """Whether the runtime is shorter than the time since the object before."""
    step_ms = 100 if before.timestamp_ms and after.timestamp_ms else 1000
    times_s = [_time_s(document) for document in (before, after)]
    if _runtime_ms(before) <= step_ms or times_s[0] is None or times_s[1] is None:
        return False
    return _runtime_ms(after) <= 1000 * (times_s[1] - times_s[0])


def _runtime_ms(document: Document) -> int:
    """Of all groups of jobs, which run one after another."""
    longest: dict[int | None, int] = {}
    for job in _jobs(document):
        runtime = max(flow.runtime for flow in (job.read, job.write, job.trim, job.mixed))
        longest[job.groupid] = max(longest.get(job.groupid, 0), runtime)
    return sum(longest.values())


def _time_s(document: Document) -> float | None:
    return document.timestamp_ms / 1000 if document.timestamp_ms else document.timestamp


def _elapsed_s(document: Document) -> int | None:
    return max((job.elapsed for job in _jobs(document) if job.elapsed is not None), default=None)


def _with_notes(runs: list[_Objects]) -> list[Run]:
    return [Run(run.last, tuple(_notes(run, number, len(runs)))) for number, run in enumerate(runs, start=1)]


def _notes(run: _Objects, number: int, runs: int) -> Iterator[str]:
    if runs > 1:
        yield f"The file has {runs} runs of fio. This is run {number}."
    has = f"{'This run' if runs > 1 else 'The file'} has {run.count} JSON objects"
    if run.cut_off:
        yield (
            f"{has}, and the last one is cut off or damaged. The one before counts: if they are of one test, as with "
            "--status-interval, its values are of the time until then, not of the whole test."
        )
    elif run.count > 1:
        yield f"{has}, as with --status-interval: the last one counts."


TOOL = "fio"


def sniff(head: str) -> bool:
    return '"fio version"' in head and "{" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    return with_repeats(measurements(find(text)))


# Entries of one group of fio's jobs as one measurement for each direction.
#
# As in fio's group_reporting (stat.c, sum_thread_stats and sum_stat): counts are summed, the runtime is the longest,
# the rates are counts per longest runtime, means are weighted with the numbers of I/Os, and histograms are added.

_DIRECTIONS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_MIXED = (None,)  # unified_rw_reporting=1: reads and writes together
_YEAR_6000 = 127_000_000_000  # s; Python's dates end with the year 9999
_ALL_CLIENTS = "All clients"  # fio's own sum of the clients
_WAITS = {"wait_for", "wait_for_previous"}  # options of jobs that start after others of their group have ended
_MOST_NAMES = 20
_OTHER_SIZES = 0.05  # larger differences from the block size are not the rest of a file
_MERGED = (
    "The options in this entry are not those of all its I/Os, as if fio had merged different jobs "
    "(group_reporting). They are left out."
)
_MORE_PROCESSES = 0.5  # than the options state: jobs of another section, because none of a section can run longer
_MOST_CONTRADICTION = 0.02  # of the IOPS, besides one I/O: fio 2.x prints whole IOPS
_WITHOUT_GLOBAL_NUMJOBS = (2, 3), (3, 4)  # versions whose JSON leaves numjobs out of the global options (issue 237)
_IOPS_AND_COUNT = "IOPS and number of I/Os"
_LOG_OPTIONS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log")


def measurements(runs: Sequence[Run]) -> list[Measurement]:
    """Raises ImportRefused if no job did I/O."""
    results = [measured for run in runs for measured in _of_run(run)]
    if not results:
        raise ImportRefused("No job of this result has done any I/O.")
    return results


def _of_run(run: Run) -> Iterator[Measurement]:
    groups = _groups(run.document)
    for group, beside in zip(groups, _beside(groups), strict=True):
        for direction in _active(group, _DIRECTIONS) or _active(group, _MIXED):
            yield _measured(run, group, direction, beside)


def _active(group: Sequence[Job], directions: Sequence[Direction | None]) -> list[Direction | None]:
    return [direction for direction in directions if any(_flow(job, direction).active for job in group)]


def _groups(document: Document) -> list[list[Job]]:
    """Jobs of one section: same group, same name, same options; those of several clients together."""
    groups: dict[object, list[Job]] = {}
    clients = [job for job in document.client_stats if job.jobname != _ALL_CLIENTS] or document.client_stats
    for job in (*document.jobs, *clients):
        key = (job.groupid, job.jobname, frozenset(job.options.items()))
        groups.setdefault(key, []).append(job)
    return list(groups.values())


def _beside(groups: Sequence[Sequence[Job]]) -> Iterator[str]:
    """For each section, the names of others that ran at the same time."""
    together: dict[int | None, list[Sequence[Job]]] = {}
    for group in groups:
        together.setdefault(group[0].groupid, []).append(group)
    apart = {number for number, sections in together.items() if number is None or _has_later(sections)}
    for group in groups:
        number = group[0].groupid
        others = (other[0].jobname for other in together[number] if other is not group)
        yield "" if number in apart else ", ".join(islice(others, _MOST_NAMES))[:500]


def _has_later(sections: Sequence[Sequence[Job]]) -> bool:
    """Whether a job starts after others of its group have ended. A shorter delay than the runtime is an overlap."""
    jobs = [job for section in sections for job in section]
    longest_ms = max(_flow(job, each).runtime for job in jobs for each in (*_DIRECTIONS, None))
    return any(not _WAITS.isdisjoint(job.options) or 0 < longest_ms <= 1000 * _delay_s(job) for job in jobs)


def _delay_s(job: Job) -> int:
    delay = job.options.get("startdelay", "").removesuffix("s")
    return int(delay) if delay.isascii() and delay.isdecimal() and len(delay) < 9 else 0


def _flow(job: Job, direction: Direction | None) -> Flow:
    flow: Flow = getattr(job, direction.value if direction else "mixed")
    return flow


def _measured(run: Run, group: Sequence[Job], direction: Direction | None, beside: str) -> Measurement:
    document = run.document
    flows = [flow for job in group if (flow := _flow(job, direction)).active]
    job_factors, other, assumed_factors, of_options = _options(document, group)
    all_flows = [_flow(job, way) for job in group for way in (*_DIRECTIONS, None)]
    contradictions = tuple(filter(None, map(_contradiction, all_flows)))
    if clients := sorted({job.hostname for job in group if job.hostname}):
        other["clients"] = ", ".join(clients)[:500]
    errors = ", ".join(str(code) for code in sorted({job.error for job in group if job.error}))
    doubtful = {BESIDE_JOBS: beside, JOB_ERROR: errors, CONTRADICTION: _IOPS_AND_COUNT if contradictions else ""}
    combined, notes = latency(flows)
    if problem := _wrong_latency(document.version, job_factors):
        combined, notes = Latency(), (problem,)
    return Measurement(
        tool="fio",
        tool_version=document.version.removeprefix("fio-"),
        name=group[0].jobname[:200],
        direction=direction,
        factors=job_factors,
        assumed=assumed_factors,
        other=other | {label: text for label, text in doubtful.items() if text},
        **_rates(flows),  # type: ignore[arg-type]
        latency=combined,
        metrics=_metrics(flows) | _cpu(group, document.global_options),
        measured_at=_time(document),
        log_names=_log_names(document, group),
        notes=(*run.notes, *_errors(group), *of_options, *contradictions[:1], *notes),
    )


_Options = tuple[dict[str, Value], dict[str, str], Set[str], tuple[str, ...]]


def _options(document: Document, group: Sequence[Job]) -> _Options:
    """The factors of a section, options without a factor, those factors that are fio's defaults, and notes.

    With group_reporting, fio prints the sum of all jobs of a group with the options of one of them. Of such an entry
    only the global options are known, and no default."""
    common, job = document.global_options, group[0]
    stated = common | job.options
    uncertain = _uncertain(document, stated)
    if "numjobs" in uncertain and "group_reporting" not in stated:  # each job has an entry
        stated, uncertain = stated | {"numjobs": str(len(group))}, frozenset()
    for options, unknown in ((stated, uncertain), (common, DEFAULTS.keys())):
        known, other = factors(options, unknown)
        if options and not _is_merged(group, known, options, of_all=options is common):
            notes = () if options is not common else (_MERGED,)
            return known, other, assumed(options, known), notes
    return {}, {}, frozenset(), (_MERGED,) if common or job.options else ()


def _uncertain(document: Document, options: Mapping[str, str]) -> Set[str]:
    """The factors whose default is not certain: older versions do not print numjobs of the section [global]."""
    if "numjobs" in options or not document.global_options:
        return frozenset()
    match = re.search(r"(\d{1,4})\.(\d{1,4})", document.version)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    first, last = _WITHOUT_GLOBAL_NUMJOBS
    return frozenset({"numjobs"}) if first <= version <= last else frozenset()


def _log_names(document: Document, group: Sequence[Job]) -> tuple[str, ...]:
    """The prefixes of its logs, "" if it is the name of the job."""
    options = document.global_options | group[0].options
    return tuple(dict.fromkeys(options[name] or group[0].jobname for name in _LOG_OPTIONS if name in options))


def _is_merged(
    group: Sequence[Job], job_factors: Mapping[str, Value], options: Mapping[str, str], *, of_all: bool
) -> bool:
    """Whether the options are not those of all I/Os of the entry. `of_all`: they are only those of all sections."""
    job = group[0]
    if not of_all and job.options.get("name", job.jobname) != job.jobname:
        return True
    if "verify" in options:  # a verification reads what was written
        return False
    stated_jobs = job_factors.get("numjobs")
    processes = job.job_runtime / _longest(job) if job.job_runtime and _longest(job) else 0.0
    if not of_all and isinstance(stated_jobs, int) and processes > stated_jobs + _MORE_PROCESSES:
        return True
    if "pattern" not in job_factors or {"rw", "readwrite"}.isdisjoint(options):
        return False
    pattern = Pattern(str(job_factors["pattern"]))
    return any(
        flow.active and (not does or _has_other_sizes(flow, size))
        for flow, does, size in (
            (job.read, pattern.reads, job_factors.get("block_size")),
            (job.write, pattern.stores, job_factors.get("write_block_size", job_factors.get("block_size"))),
        )
    )


def _has_other_sizes(flow: Flow, size: Value) -> bool:
    if not _exact(flow) or not flow.total_ios or not isinstance(size, int) or not size:
        return False
    return abs(flow.io_bytes / flow.total_ios / size - 1) > _OTHER_SIZES


def _rates(flows: Sequence[Flow]) -> dict[str, float | int | None]:
    """fio computes the IOPS from its number of I/Os and the runtime, so these count if the IOPS contradict them,
    unless the bandwidth contradicts them too."""
    runtime = max(flow.runtime for flow in flows)
    ios = None if any(flow.total_ios is None for flow in flows) else sum(flow.total_ios or 0 for flow in flows)
    moved = sum(_bytes(flow) for flow in flows)
    first = flows[0]
    iops: float | None
    rate: float | None
    if ios is not None and any(map(_contradiction, flows)) and not any(map(_is_other_amount, flows)):
        iops, rate = ios * 1000 / runtime, moved * 1000 / runtime
    elif len(flows) == 1:
        iops, rate = first.iops, _bytes_per_s(first)
    elif ios is not None and runtime and all(_exact(flow) for flow in flows):
        iops, rate = ios * 1000 / runtime, moved * 1000 / runtime
    else:  # fio 2.x prints bytes in whole KiB, and its first versions no count
        iops = None if any(flow.iops is None for flow in flows) else sum(flow.iops or 0 for flow in flows)
        rate = sum(_bytes_per_s(flow) or 0 for flow in flows)
    if iops is None:
        raise ImportRefused("A job has no number for `iops`.")
    return {"iops": iops, "bytes_per_s": rate, "ios": ios, "bytes": moved, "runtime_ms": runtime}


def _contradiction(flow: Flow) -> str:
    """A note, "" if the IOPS are those of the number of I/Os."""
    if flow.iops is None or not 0 <= flow.iops <= MAX_IOPS or not flow.total_ios or not flow.runtime:
        return ""
    counted = flow.total_ios * 1000 / flow.runtime
    if abs(flow.iops - counted) <= _MOST_CONTRADICTION * counted + max(1.0, 1000 / flow.runtime):
        return ""
    return f"The file states {flow.iops:,.6g} IOPS, but its number of I/Os and its runtime give {counted:,.6g}."


def _is_other_amount(flow: Flow) -> bool:
    """Whether the bandwidth is not that of the bytes and the runtime."""
    rate = flow.bw_bytes if flow.bw_bytes is not None else (flow.bw or 0) * KIB
    counted = _bytes(flow) * 1000 / flow.runtime if flow.runtime else 0.0
    return abs(rate - counted) > _MOST_CONTRADICTION * counted + KIB


def _bytes(flow: Flow) -> int:
    return flow.io_bytes if _exact(flow) else flow.io_bytes * KIB


def _exact(flow: Flow) -> bool:
    """Whether `io_bytes` is in bytes: fio 3.x, which has fields beside it for KiB and, from 3.2 on, bytes/s."""
    return flow.bw_bytes is not None or flow.io_kbytes is not None


def _bytes_per_s(flow: Flow) -> float | None:
    if flow.bw_bytes is not None:
        return float(flow.bw_bytes)
    if _exact(flow) and flow.runtime:
        return flow.io_bytes * 1000 / flow.runtime
    return None if flow.bw is None else flow.bw * KIB


def _metrics(flows: Sequence[Flow]) -> dict[str, float]:
    means = {}
    for kind in ("slat", "clat", "lat"):
        parts = [(part, unit, flow) for flow in flows for part, unit in (printed(flow, kind),) if has_mean(part)]
        if parts:
            weighted = sum((part.mean or 0) * unit * (flow.total_ios or 1) for part, unit, flow in parts if part)
            means[f"{kind}_mean_ns"] = weighted / sum(flow.total_ios or 1 for _, _, flow in parts)
    return means


def _cpu(group: Sequence[Job], common: Mapping[str, str]) -> dict[str, float]:
    """Percent of one CPU of all processes, and CPU time per I/O of all directions if both are known for sure.

    fio divides the CPU time by the sum of the runtimes of its processes (stat.c: usr_time * 100 / total_run_time).
    """
    values = {}
    for name in ("usr_cpu", "sys_cpu"):
        shares = [(getattr(job, name), _processes(job, common)) for job in group]
        if all(share is not None and share >= 0 for share, _ in shares):  # below 0 after an overflow of fio
            values[f"{name}_percent"] = sum(share * processes for share, processes in shares)
    flows = [_flow(job, way) for way in _active(group, _DIRECTIONS) or _MIXED for job in group]
    ios = [flow.total_ios for flow in flows if flow.active]
    times = [_cpu_ms(job, common) for job in group]
    if all(ios) and all(time is not None for time in times):
        values[CPU_PER_IO] = sum(time or 0 for time in times) * MS / sum(number or 0 for number in ios)
    return values


def _cpu_ms(job: Job, common: Mapping[str, str]) -> float | None:
    """None if the number of processes is not known: older versions of fio print neither runtimes nor options."""
    if job.usr_cpu is None or job.sys_cpu is None or not (job.job_runtime or common or job.options):
        return None
    if min(job.usr_cpu, job.sys_cpu) < 0:
        return None
    runtime = job.job_runtime or _longest(job) * _processes(job, common)
    return (job.usr_cpu + job.sys_cpu) / 100 * runtime


def _processes(job: Job, common: Mapping[str, str]) -> float:
    """Average number of running processes. `common` are options of all jobs."""
    if job.job_runtime and _longest(job):
        return job.job_runtime / _longest(job)
    options = {**common, **job.options}
    jobs = options.get("numjobs", "1")
    grouped = options.get("group_reporting") in ("", "1")
    return float(jobs) if grouped and jobs.isdecimal() and len(jobs) < 6 else 1.0


def _longest(job: Job) -> int:
    return max(flow.runtime for flow in (job.read, job.write, job.trim, job.mixed))


def _time(document: Document) -> datetime | None:
    """When fio printed the result, which is the end of the test."""
    seconds = document.timestamp_ms / 1000 if document.timestamp_ms else document.timestamp
    if not seconds or not 0 < seconds < _YEAR_6000:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC)


def _wrong_latency(version: str, job_factors: Mapping[str, Value]) -> str:
    """Why the latency of this version is wrong, or "" (axboe/fio issue 1484 and pull request 1594)."""
    if job_factors.get("ioengine") != "io_uring" or not job_factors.get("sqthread_poll"):
        return ""
    needed = (3, 34) if job_factors.get("iodepth") == 1 else (3, 36)
    match = re.search(r"(\d{1,4})\.(\d{1,4})", version)
    if match and (int(match[1]), int(match[2])) >= needed:
        return ""
    return f"fio before {needed[0]}.{needed[1]} reports wrong latencies with sqthread_poll, so they are left out."


def _errors(group: Sequence[Job]) -> tuple[str, ...]:
    return tuple(f"fio reports error {code} in this job." for code in sorted({job.error for job in group if job.error}))
