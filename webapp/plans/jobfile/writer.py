"""Converts a plan into a fio job file: one section per point, each waiting for the previous one.

fio can run the file, once for each point. Values without an fio option (settings of the host, dropped caches, depth as
threads, kinds of target, repeats) are in comments that `read_job_file` reads back:

    ; sweetspot plan: repeats = 3            before the first section: for the whole plan
    ; sweetspot: scheduler = none            in a section: overrides fio's options

A factor gets such a comment if fio's options alone would not restore its value. So an exported plan has the same points
after an import.
"""

from collections.abc import Iterator

from webapp.core.errors import Refusal
from webapp.plans.document import PlanDocument
from webapp.plans.engines import engine_name, fio
from webapp.plans.factors import CHANGE, FACTORS
from webapp.plans.grids import grids_of, refuse_unsound
from webapp.plans.jobfile.reader import Line, Section, read_job
from webapp.plans.part_levels import factor_texts
from webapp.plans.points import Point, with_defaults
from worker.recipes.fio import DATA_OPTIONS, blocks, content, further, sequence

MAX_POINTS = 1000
_BUFFERS = {"refilled": ("refill_buffers", "1"), "repeated": ("scramble_buffers", "0"), "zeroes": ("zero_buffers", "1")}
_SAME = (
    ("ioengine", "ioengine"), ("numjobs", "numjobs"), ("sync", "sync"),
    ("fsync", "fsync_every"), ("nrfiles", "files"), ("rwmixread", "read_percent"),
)  # fmt: skip
_SWITCHES = ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored", "end_fsync")

Options = list[tuple[str, str]]


def write_job_file(document: PlanDocument) -> str:
    """Raises PlanRefused, or Refusal too_many_points."""
    if others := parts_unfit_for_job_files(document):
        streams = any(part.streams for part in document.parts)
        several = " without streams" if streams else ""
        raise Refusal(
            "not_fio",
            f"A fio job file can contain only parts of fio{several}, not of {', '.join(others)}. Export YAML instead.",
        )
    refuse_unsound(document)
    grids = grids_of(document)
    if sum(grid.count for grid in grids) > MAX_POINTS:
        raise Refusal(
            "too_many_points",
            f"The plan has more than {MAX_POINTS:,} points, the maximum of a job file. Export YAML instead.",
        )
    names = _unique([_plain(part.name) for part in document.parts])
    lines = _head(document)
    for name, grid in zip(names, grids, strict=True):
        for number, point in enumerate(grid.points, start=1):
            lines += ["", *_section(f"{name} {number}", point)]
            lines += [f"; sweetspot: part = {name}", f"; sweetspot: on = {', '.join(grid.part.on)}"]
    return "\n".join(lines) + "\n"


def parts_unfit_for_job_files(document: PlanDocument) -> list[str]:
    """The names of the parts that a fio job file cannot contain: those of other engines, and those with streams."""
    own = fio.WORKLOAD.engine_name()
    return [part.name for part in document.parts if part.streams or engine_name(factor_texts(document, part)) != own]


def _head(document: PlanDocument) -> list[str]:
    plan = {
        "title": _plain(document.title) or "Plan",
        "repeats": str(document.repeats),
        "spread_percent": str(document.spread_percent) if document.spread_percent else "",
        "repeats_min": str(document.repeats_min) if document.spread_percent else "",
        "order": document.order.value,
        "retries": str(document.retries),
        "stop_after": str(document.stop_after),
        "sequence": ", ".join(document.sequence),
    }
    note = [f"; > {line}" for line in document.note.splitlines() if line.strip()]
    return [
        "; A Sweetspot plan as a fio job file: one section per point. Add filename= or directory=.",
        *(f"; sweetspot plan: {name} = {value}" for name, value in plan.items() if value),
        *note,
    ]


def _section(name: str, point: Point) -> list[str]:
    options = _options(point)
    lines = [f"[{name}]", "stonewall", *(f"{option}={value}" if value else option for option, value in options)]
    return lines + [
        f"; sweetspot: {factor} = {FACTORS[factor].values.write(point[factor])}" for factor in _lost(options, point)
    ]


def _options(point: Point) -> Options:
    """The point's fio options."""
    work = fio.workload(point, seed=1)
    options: Options = [("rw", work.pattern + sequence(work)), ("direct", "1" if point["direct"] else "0")]
    options.append(blocks(work))
    options += [(option, str(point[factor])) for option, factor in _SAME if point.get(factor) not in (None, 0, "none")]
    options += [(name, "1") for name in _SWITCHES if point.get(name)]
    options += [_BUFFERS[str(point["buffers"])]] if point["buffers"] in _BUFFERS else []
    options += [option for option in content(work) if option[0] in DATA_OPTIONS] + further(work)
    if work.pattern.random:
        options.append(("norandommap", ""))
    return [*options, *_depth(point), *_extent(point), *_end(point), ("group_reporting", "")]


def _depth(point: Point) -> Options:
    """One thread per unit of depth if the workload uses threads instead of a queue."""
    work = fio.workload(point, seed=1)
    if work.ioengine.asynchronous:
        return [("iodepth", str(work.iodepth))]
    return [("numjobs", str(work.threads))] if work.threads != work.numjobs else []


def _extent(point: Point) -> Options:
    """fio's size is the total of a job's files."""
    size = point.get("size")
    return [("size", str(size * int(point["files"] or 1)))] if isinstance(size, int) else []


def _end(point: Point) -> Options:
    """fio's io_size is the share of each job, rounded up."""
    if "runtime" in point:
        ramp: Options = [("ramp_time", f"{point['ramp']}s")] if point["ramp"] else []
        return [("runtime", f"{point['runtime']}s"), ("time_based", ""), *ramp]
    amount, threads = int(point["amount"] or 0), fio.workload(point, seed=1).threads
    return [("io_size", str(-(-amount // threads)))]


def _lost(options: Options, point: Point) -> Iterator[str]:
    """Factors that the options alone would not restore."""
    lines = tuple(Line(1, option, value) for option, value in options)
    read = read_job(Section(1, "point", lines)).values
    back = with_defaults({name: (value,) for name, value in read.items()}, drop_caches=False)
    for name, value in point.items():
        if name != CHANGE and back.get(name, ("not there",)) != (value,):
            yield name


def _plain(text: str) -> str:
    """The text as a section name: without brackets, comment signs and variables."""
    kept = "".join(" " if character in "[];#$" or not character.isprintable() else character for character in text)
    return " ".join(kept.split())[:80]


def _unique(names: list[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        wanted = name or "part"
        numbered = (f"{wanted} ({number})" for number in range(2, len(names) + 2))
        made.append(next(one for one in (wanted, *numbered) if one not in made))
    return made
