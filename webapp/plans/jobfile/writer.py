"""Converts a plan into a fio job file: one section per point, each waiting for the previous one. A point with streams
is one section per stream, of which only the first waits.

fio can run the file, once for each point. Values without an fio option (settings of the host, dropped caches, depth as
threads, kinds of target, repeats) are in comments that `read_job_file` reads back:

    ; sweetspot plan: repeats = 3            before the first section: for the whole plan
    ; sweetspot: scheduler = none            in a section: overrides fio's options

A factor gets such a comment if fio's options alone would not restore its value. So an exported plan has the same points
after an import.
"""

from collections.abc import Iterator, Mapping

from webapp.core.errors import Refusal
from webapp.plans.document import Part, PlanDocument, budget_text
from webapp.plans.engines import engine_name, fio
from webapp.plans.factors import CHANGE, FACTORS, STREAMS, STREAMS_ON
from webapp.plans.grids import grids_of, refuse_unsound
from webapp.plans.jobfile.jobs import read_job
from webapp.plans.jobfile.lines import Line, Section
from webapp.plans.load import LOAD
from webapp.plans.part_levels import factor_texts, stream_engine
from webapp.plans.points import Point, with_defaults
from webapp.plans.streams import EACH, OF_TRIALS, TOGETHER, names_of, own_point
from worker.contract.workload import FioWorkload
from worker.recipes.fio import DATA_OPTIONS, blocks, content, flag, further, placement, sequence
from worker.recipes.fio.problems import parts_of

MAX_POINTS = 1000
_BUFFERS = {"refilled": ("refill_buffers", "1"), "repeated": ("scramble_buffers", "0"), "zeroes": ("zero_buffers", "1")}
_SAME = (
    ("ioengine", "ioengine"), ("numjobs", "numjobs"), ("sync", "sync"),
    ("fsync", "fsync_every"), ("nrfiles", "files"),
)  # fmt: skip
_SWITCHES = ("fixedbufs", "registerfiles", "hipri", "sqthread_poll", "nonvectored", "end_fsync")
_OFFSETS = ("offset", "offset_increment")
_POLICY = "cpus_allowed_policy"

Options = list[tuple[str, str]]


def write_job_file(document: PlanDocument) -> str:
    """Raises PlanRefused, or Refusal too_many_points."""
    if others := parts_unfit_for_job_files(document):
        streams = any(part.streams for part in document.parts)
        together = " whose streams always run together" if streams else ""
        without = " without `load`" if document.names(LOAD) else ""
        raise Refusal(
            "not_fio",
            f"A fio job file can contain only parts of fio{together}{without}, not of "
            f"{', '.join(others)}. Export YAML instead.",
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
            stated = [f"; sweetspot: part = {name}", f"; sweetspot: on = {', '.join(grid.part.on)}"]
            lines += _sections(f"{name} {number}", point, stated)
    return "\n".join(lines) + "\n"


def parts_unfit_for_job_files(document: PlanDocument) -> list[str]:
    """The names of the parts that a fio job file cannot contain: those of other engines, those with streams that also
    run alone, and those with shares of the load, whose rates follow from other trials."""
    return [part.name for part in document.parts if not _fits(part, factor_texts(document, part))]


def _fits(part: Part, texts: Mapping[str, str]) -> bool:
    engine_of_job_files = fio.WORKLOAD.engine_name()
    engines = {stream_engine(texts, stream.name) for stream in part.streams} or {engine_name(texts)}
    has_shares = LOAD in texts or any(LOAD in stream.factors for stream in part.streams)
    return engines == {engine_of_job_files} and not has_shares and texts.get(STREAMS, TOGETHER) == TOGETHER


def _sections(name: str, point: Point, stated: list[str]) -> Iterator[str]:
    """The section of a point, or one for each of its streams."""
    streams = names_of(point)
    if not streams:
        yield from ("", *_section(name, point, "stonewall"), *stated)
    for number, stream in enumerate(streams):
        factors = {factor: value for factor, value in own_point(point, stream).items() if factor not in OF_TRIALS}
        begin = () if number else ("stonewall",)
        yield from ("", *_section(f"{name} {stream}", factors, *begin), *stated, f"; sweetspot: stream = {stream}")
        if point.get(STREAMS_ON) == EACH:
            yield f"; sweetspot: streams_on = {EACH}"


def _head(document: PlanDocument) -> list[str]:
    plan = {
        "title": _plain(document.title) or "Plan",
        "repeats": str(document.repeats),
        "spread_percent": str(document.spread_percent) if document.spread_percent else "",
        "decide_percent": str(document.decide_percent) if document.decide_percent else "",
        "decide": ", ".join(document.decide),
        "repeats_min": str(document.repeats_min) if document.spread_percent or document.decide_percent else "",
        "goal": document.goal,
        "budget": budget_text(document),
        "order": document.order.value,
        "retries": str(document.retries),
        "stop_after": str(document.stop_after),
        "sequence": ", ".join(document.sequence),
    }
    note = [f"; > {line}".rstrip() for line in document.note.splitlines()]
    return [
        "; A Sweetspot plan as a fio job file: one section per point. Add filename= or directory=.",
        *(f"; sweetspot plan: {name} = {value}" for name, value in plan.items() if value),
        *note,
    ]


def _section(name: str, point: Point, *begin: str) -> list[str]:
    options = _options(point)
    lines = [f"[{name}]", *begin, *(f"{option}={value}" if value else option for option, value in options)]
    return lines + [
        f"; sweetspot: {factor} = {FACTORS[factor].values.write(point[factor])}" for factor in _lost(options, point)
    ]


def _options(point: Point) -> Options:
    """The point's fio options."""
    work = fio.workload(point, seed=1)
    options: Options = [("rw", work.pattern + sequence(work)), ("direct", flag(work.direct)), blocks(work)]
    if work.read_percent is not None:
        options.append(("rwmixread", str(work.read_percent)))
    options += [(option, str(point[factor])) for option, factor in _SAME if point.get(factor) not in (None, 0, "none")]
    options += [(name, "1") for name in _SWITCHES if point.get(name)]
    options += [_BUFFERS[str(point["buffers"])]] if point["buffers"] in _BUFFERS else []
    options += [option for option in content(work) if option[0] in DATA_OPTIONS] + further(work)
    options += [option for option in placement(work.placement) if option[0] != _POLICY or "cpus_policy" in point]
    if work.pattern.random:
        options.append(("norandommap", flag(work.options.norandommap is not False)))
    if not work.direct:
        options.append(("fadvise_hint", work.options.fadvise_hint or "0"))
    if work.pattern.stores and not work.pattern.reads and work.prefill:
        options.append(("overwrite", "1"))
    return [*options, *_depth(work), *_extent(point, work), *_end(point, work), ("group_reporting", "")]


def _depth(work: FioWorkload) -> Options:
    """One thread per unit of depth if the workload uses threads instead of a queue."""
    if work.ioengine.asynchronous:
        return [("iodepth", str(work.iodepth))]
    return [("numjobs", str(work.threads))] if work.threads != work.numjobs else []


def _extent(point: Point, work: FioWorkload) -> Options:
    """fio's size is the total of a job's files; sequential jobs have equal parts of each file."""
    parts = parts_of(work)
    parts = 1 if int(point.get("size") or 0) % (parts * 512) else parts  # no job of Sweetspot has such parts
    options = [(name, f"{point[f'{name}_percent']}%") for name in _OFFSETS if f"{name}_percent" in point]
    size, percent = point.get("size"), point.get("size_percent", 100 if parts > 1 or "passes" in point else None)
    if isinstance(size, int):
        share = size // parts
        options += [
            ("size", str(share * work.files_per_job)),
            *([("offset_increment", str(share))] if parts > 1 else []),
        ]
    elif isinstance(percent, int) and percent % parts == 0:
        share = percent // parts
        options += [("size", f"{share}%"), *([("offset_increment", f"{share}%")] if parts > 1 else [])]
    return options


def _end(point: Point, work: FioWorkload) -> Options:
    """fio's io_size is the share of each job, rounded up."""
    if "runtime" in point:
        ramp: Options = [("ramp_time", f"{point['ramp']}s")] if point["ramp"] else []
        return [("runtime", f"{point['runtime']}s"), ("time_based", ""), *ramp]
    if "passes" in point:
        return [("loops", str(point["passes"]))]
    return [("io_size", str(-(-int(point["amount"] or 0) // work.threads)))]


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
    printable = "".join(" " if character in "[];#$" or not character.isprintable() else character for character in text)
    return " ".join(printable.split())[:80]


def _unique(names: list[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        wanted = name or "part"
        numbered = (f"{wanted} ({number})" for number in range(2, len(names) + 2))
        made.append(next(candidate for candidate in (wanted, *numbered) if candidate not in made))
    return made
