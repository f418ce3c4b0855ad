"""fio's human-readable text: fio 1.50 to 3.4x, of one or several runs, also pasted with prompts and other lines around.

Units: `KiB`, `MiB` powers of 1,024 and `kB`, `MB`, `k` of 1,000 from fio 2.17 on; before it `KB`, `MB` are powers of
1,024. Latencies have their unit in the line (nsec, usec, msec). Sources: fio's stat.c (show_thread_status_normal,
show_ddir_status, show_clat_percentiles), init.c and lib/num2str.c of versions 1.50, 2.0 to 2.21, 3.0 to 3.42.
"""

from collections.abc import Iterator, Mapping, Sequence

from webapp.imports.formats.fio_options import DEFAULTS, factors
from webapp.imports.formats.fio_text_output import KINDS, Entry, Flow, Run, Sum, has_results, runs
from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import ImportRefused, Printed, lines
from webapp.plans.values import Value
from webapp.results.reading.doubts import BESIDE_JOBS, CONTRADICTION, JOB_ERROR
from worker.contract.items import Direction

TOOL = "fio"


def sniff(head: str) -> bool:
    return has_results(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    return with_repeats(measurements(runs(lines(text.replace("\r\n", "\n").replace("\r", "\n")))))


# Entries of fio's text as measurements: one for each direction of a section of a run.
#
# fio prints IOPS and bandwidth with four digits, but the numbers of I/Os and the runtime in full. The IOPS are
# therefore computed from these, as fio does (stat.c: 1000 * total_io_u / runtime), unless they contradict the printed
# IOPS. The bandwidth is the printed one, with the step of its last digit.

_ALL_CLIENTS = "All clients"
_MOST_OFF = 0.05  # tolerance of a mean size of I/Os; a larger difference is not rounding
_ISSUED_PLACE = {Direction.READ: 0, Direction.WRITE: 1, Direction.TRIM: 2}
_MERGED = "This entry is the sum of different sections ({names}) with group_reporting. Their options are left out."
_PLACE = "place in the text"
_NO_OPTIONS = "The line with the options of this job (rw, bs, iodepth) is missing in the text."
_OTHER_SIZES = "The options contradict the mean size of the I/Os. They are left out."
_IOPS_AND_COUNT = "IOPS and number of I/Os"
_RATES = ("iops", "bytes_per_s")
_COUNTED = "The IOPS are the number of I/Os divided by the runtime."
_SUM_ONLY = "Only the sum of the group was in the text: the bandwidth of all its jobs, without IOPS and latencies."
_NO_PERCENTILES = "The jobs were reported one by one, so there are no percentiles of the whole."


def measurements(runs: Sequence[Run]) -> list[Measurement]:
    """Raises ImportRefused if there is no result."""
    results = [measured for run in runs for measured in _of_run(run)]
    if not results:
        raise ImportRefused(
            "This text of fio has no result: no job has a line with IOPS and bandwidth. The jobs did no I/O, or the "
            "text is cut off."
        )
    return results


def _of_run(run: Run) -> Iterator[Measurement]:
    groups = _groups([entry for entry in run.entries if entry.flows])
    for entries in groups:
        others = [each[0].name for each in groups if each is not entries and each[0].group == entries[0].group]
        beside = ", ".join(others)[:500] if entries[0].jobs else ""
        for direction in _directions(entries):
            yield _measured(run, entries, direction, beside)
    if not groups:
        yield from map(_of_sum, run.sums)


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of one section: jobs of the same name and group, also of several clients. An entry without its name
    is of no known section."""
    groups: dict[object, list[Entry]] = {}
    entries = [each for each in entries if each.name != _ALL_CLIENTS] or entries
    for place, entry in enumerate(entries):
        groups.setdefault((entry.group, entry.name) if entry.jobs else place, []).append(entry)
    return list(groups.values())


def _directions(entries: Sequence[Entry]) -> list[Direction | None]:
    """unified_rw_reporting=both prints the sum of the directions too."""
    directions = list(dict.fromkeys(flow.direction for entry in entries for flow in entry.flows))
    return [direction for direction in directions if direction is not None] or directions


def _measured(run: Run, entries: Sequence[Entry], direction: Direction | None, beside: str) -> Measurement:
    parts = [(entry, flow) for entry in entries for flow in entry.flows if flow.direction is direction]
    flows = [flow for _, flow in parts]
    contradictions = [note for entry in entries for flow in entry.flows if (note := _contradiction(entry, flow))]
    ios, rates = _rates(parts)
    job_factors, other, notes = _options(run, entries)
    if _has_other_sizes(job_factors, direction, rates):
        job_factors, other, notes = {}, {}, (*notes, _OTHER_SIZES)
    latency, of_latency = _latency(flows)
    labels = {BESIDE_JOBS: beside, JOB_ERROR: _error(entries), CONTRADICTION: _IOPS_AND_COUNT if contradictions else ""}
    if clients := sorted({entry.client for entry in entries if entry.client}):
        labels["clients"] = ", ".join(clients)[:500]
    return Measurement(
        tool="fio",
        tool_version=run.version,
        name=entries[0].name,
        direction=direction,
        factors=job_factors,
        other=other | {name: text for name, text in labels.items() if text},
        iops=rates[0],
        bytes_per_s=rates[1],
        ios=ios,
        runtime_ms=max((flow.runtime_ms for flow in flows if flow.runtime_ms is not None), default=None),
        latency=latency,
        metrics=_metrics(flows, entries),
        notes=(*notes, *contradictions[:1], *((_COUNTED,) if ios is not None else _printed(rates)), *of_latency),
    )


def _error(entries: Sequence[Entry]) -> str:
    return ", ".join(sorted({f"{each.error} {each.error_text}".strip()[:200] for each in entries if each.error}))[:500]


_Rates = tuple[float | None, Printed | None]


def _rates(parts: Sequence[tuple[Entry, Flow]]) -> tuple[int | None, _Rates]:
    """The number of I/Os if it is stated, IOPS and bytes/s of all jobs. As fio does in a group, the rates of jobs are
    weighted with their runtimes and divided by the longest one."""
    counts = [None if _contradiction(entry, flow) else _count(entry, flow) for entry, flow in parts]
    longest = max((flow.runtime_ms or 0 for _, flow in parts), default=0)
    iops, moved = (_weighted([getattr(flow, name) for _, flow in parts], parts, longest) for name in _RATES)
    if not longest or any(count is None for count in counts):
        return None, (iops, moved)
    ios = sum(count or 0 for count in counts)
    return ios, (ios * 1000 / longest, moved)


def _contradiction(entry: Entry, flow: Flow) -> str:
    """A note, "" if the printed IOPS are those of the number of I/Os."""
    count = _count(entry, flow)
    if count is None or flow.iops is None or not flow.runtime_ms:
        return ""
    counted = count * 1000 / flow.runtime_ms
    if abs(counted - flow.iops) <= flow.iops.step * 1.01:
        return ""
    return f"The text states {float(flow.iops):,.6g} IOPS, but its number of I/Os and its runtime give {counted:,.6g}."


def _weighted(values: Sequence[Printed | None], parts: Sequence[tuple[Entry, Flow]], longest: int) -> Printed | None:
    known = [
        (value, (flow.runtime_ms or longest) / longest if longest else 1.0)
        for value, (_, flow) in zip(values, parts, strict=True)
        if value is not None
    ]
    if len(known) < len(parts):
        return None
    return Printed(sum(value * share for value, share in known), sum(value.step * share for value, share in known))


def _count(entry: Entry, flow: Flow) -> int | None:
    """The I/Os of a direction. An entry whose text is cut off has none."""
    if entry.issued is None or flow.runtime_ms is None:
        return None
    return sum(entry.issued) if flow.direction is None else entry.issued[_ISSUED_PLACE[flow.direction]]


def _printed(rates: _Rates) -> Iterator[str]:
    iops, _ = rates
    if isinstance(iops, Printed):
        yield f"The IOPS are as printed, in steps of {iops.step:g}."


def _options(run: Run, entries: Sequence[Entry]) -> tuple[dict[str, Value], dict[str, str], tuple[str, ...]]:
    """The factors of a section, what has no factor, and notes. Options that the text does not state are unknown."""
    first, jobs = entries[0], sum(entry.jobs for entry in entries)
    of_group = [section for section in run.sections if section.group == first.group]
    reported = {entry.name for entry in run.entries}
    unreported = [section.name for section in of_group if section.name not in reported]
    if first.jobs > 1 and unreported:
        names = ", ".join(dict.fromkeys([first.name, *unreported]))[:200]
        return {}, {}, (_MERGED.format(names=names),)
    number_of_jobs = {"numjobs": str(jobs)} if jobs else {}
    section = next((section for section in of_group if section.name == first.name), None)
    shown = dict(section.options) if section else {}
    if run.command and _agrees(run.command, shown, first, jobs):
        actual: dict[str, str] = {name: shown[name] for name in ("ioengine", "iodepth") if name in shown}
        return *factors({**actual, **run.command}), ()
    job_factors, other = factors(shown | number_of_jobs, DEFAULTS.keys())
    if section is not None:
        return job_factors, other, ()
    place = {_PLACE: f"line {first.line}"}  # it may be another test than others of the same name
    return job_factors, place, (_NO_OPTIONS,)


def _agrees(command: Mapping[str, str], shown: Mapping[str, str], entry: Entry, jobs: int) -> bool:
    """Whether a command line above an entry is that of the entry, as far as the text shows. `jobs` is 0 if unknown."""
    given, _ = factors(command)
    if jobs:
        same = command.get("name") == entry.name and given.get("numjobs") == jobs
    else:  # only a line with IOPS and bandwidth, which is that of all jobs with group_reporting
        same = "name" in command and (given.get("numjobs") == 1 or "group_reporting" in command)
    of_section, _ = factors(shown, DEFAULTS.keys())
    return same and all(
        given.get(name) == of_section[name] for name in ("pattern", "block_size", "iodepth") if name in of_section
    )


def _has_other_sizes(job_factors: Mapping[str, Value], direction: Direction | None, rates: _Rates) -> bool:
    size = job_factors.get(
        "write_block_size" if direction is Direction.WRITE else "block_size", job_factors.get("block_size")
    )
    iops, moved = rates
    if direction is None or not isinstance(size, int) or not iops or moved is None:
        return False
    step = moved.step / moved if moved else 1.0
    rounding = iops.step / iops if isinstance(iops, Printed) else 0.0
    return abs(moved / iops / size - 1) > _MOST_OFF + step + rounding


def _latency(flows: Sequence[Flow]) -> tuple[Latency, tuple[str, ...]]:
    """Total latency if it has percentiles, otherwise completion latency if that has some, otherwise what there is."""
    for has in (lambda flow, kind: flow.percentiles.get(kind), lambda flow, kind: kind in flow.latencies):
        for kind in ("lat", "clat"):
            if any(has(flow, kind) for flow in flows):
                return _of_kind(kind, flows)
    return Latency(), ()


def _of_kind(kind: str, flows: Sequence[Flow]) -> tuple[Latency, tuple[str, ...]]:
    stated = [(flow.latencies[kind], flow) for flow in flows if kind in flow.latencies]
    percentiles = flows[0].percentiles.get(kind, {}) if len(flows) == 1 else {}
    several = len(flows) > 1 and any(flow.percentiles for flow in flows)
    step = max((value.step for value in percentiles.values()), default=0.0)
    if len(stated) < len(flows):
        return Latency(kind=kind, percentiles=percentiles, percentile_step_ns=step), ()
    return Latency(
        kind=kind,
        min_ns=min(low for (low, _, _, _), _ in stated),
        max_ns=max(high for (_, high, _, _), _ in stated),
        mean_ns=_mean(kind, flows),
        stddev_ns=stated[0][0][3] if len(stated) == 1 else None,
        percentiles=percentiles,
        step_ns=max(mean.step for (_, _, mean, _), _ in stated),
        percentile_step_ns=step,
    ), (_NO_PERCENTILES,) if several else ()


def _mean(kind: str, flows: Sequence[Flow]) -> float | None:
    """Of all jobs, weighted with their I/Os."""
    known = [
        (flow.latencies[kind][2], (flow.iops or 0.0) * (flow.runtime_ms or 1))
        for flow in flows
        if kind in flow.latencies
    ]
    if not known:
        return None
    total = sum(weight for _, weight in known)
    return (
        sum(mean * weight for mean, weight in known) / total if total else sum(mean for mean, _ in known) / len(known)
    )


def _metrics(flows: Sequence[Flow], entries: Sequence[Entry]) -> dict[str, float]:
    """Mean latencies of all kinds, and the CPU shares in percent of one CPU of all processes."""
    values = {f"{kind}_mean_ns": mean for kind in KINDS if (mean := _mean(kind, flows)) is not None}
    shares = [(entry.cpu_percent, entry.jobs or 1) for entry in entries]
    for place, name in enumerate(("usr_cpu_percent", "sys_cpu_percent")):
        if all(share is not None for share, _ in shares):
            values[name] = sum(share[place] * jobs for share, jobs in shares if share)
    return values


def _of_sum(total: Sum) -> Measurement:
    return Measurement(
        tool="fio", name=f"group {total.group}", direction=total.direction, factors={}, bytes_per_s=total.bytes_per_s,
        runtime_ms=total.runtime_ms, notes=(_SUM_ONLY,),
    )  # fmt: skip
